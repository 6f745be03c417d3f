"""The dashboard: jobs seen and steered in a browser, and the REST API behind it: `headwater ui`."""

from headwater.web.server import Dashboard, serve

__all__ = ["Dashboard", "serve"]
