"""What every connector must do, as checks to run on one's own: `check_source` and `check_sink`."""

from headwater.testing.conformance.sinks import check_sink
from headwater.testing.conformance.sources import check_source
from headwater.testing.conformance.verdict import NotConforming

__all__ = ["NotConforming", "check_sink", "check_source"]
