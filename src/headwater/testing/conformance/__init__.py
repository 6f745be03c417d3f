"""What connectors, triggers and window assigners must do, as checks to run on one's own."""

from headwater.testing.conformance.assigners import check_assigner
from headwater.testing.conformance.sinks import check_sink
from headwater.testing.conformance.sources import check_source
from headwater.testing.conformance.triggers import check_trigger
from headwater.testing.conformance.verdict import NotConforming

__all__ = ["NotConforming", "check_assigner", "check_sink", "check_source", "check_trigger"]
