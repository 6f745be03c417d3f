"""How tests are dealt out to workers that run side by side."""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

_ONE_BY_ONE = ("tests/oracle/", "tests/transcripts/test_savepoints.py", "tests/transcripts/test_transcripts.py")
"""Many tests that share nothing, in few files."""
_WITH_A_BROKER = ("tests/connectors/test_kafka_", "tests/connectors/test_howto.py", "tests/connectors/test_sql.py")
"""Those of the broker, which takes 20 s to come up: one worker has it."""


class Shares(LoadScopeScheduling):
    """A worker is given the tests of a file, which share fixtures, those of the broker, or one test; in their order."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(_ONE_BY_ONE):
            return nodeid
        return "broker" if nodeid.startswith(_WITH_A_BROKER) else nodeid.partition("::")[0]
