"""Rows over HTTP into the event log, so that anything that speaks HTTP can feed a job: `headwater push`."""

from headwater.push.server import PushServer, serve

__all__ = ["PushServer", "serve"]
