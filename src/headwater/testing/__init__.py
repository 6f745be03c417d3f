"""For users' tests: `Harness` drives a piece of a job by hand, `TimedRows` is input that comes at given times.

`check_source`, `check_sink`, `check_trigger` and `check_assigner` tell whether a connector, a trigger or a window assigner
keeps its contract.
"""

from headwater.testing.conformance import NotConforming, check_assigner, check_sink, check_source, check_trigger
from headwater.testing.harness import Harness
from headwater.testing.timed_rows import TimedRows

__all__ = [
    "Harness",
    "NotConforming",
    "TimedRows",
    "check_assigner",
    "check_sink",
    "check_source",
    "check_trigger",
]
