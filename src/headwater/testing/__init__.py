"""For users' tests: `Harness` drives a piece of a job by hand, `TimedRows` is input that comes at given times.

`check_source` and `check_sink` tell whether a connector keeps its contract.
"""

from headwater.testing.conformance import NotConforming, check_sink, check_source
from headwater.testing.harness import Harness
from headwater.testing.timed_rows import TimedRows

__all__ = ["Harness", "NotConforming", "TimedRows", "check_sink", "check_source"]
