"""For users' tests: `Harness` drives a piece of a job by hand, `TimedRows` is input that comes at given times."""

from headwater.testing.harness import Harness
from headwater.testing.timed_rows import TimedRows

__all__ = ["Harness", "TimedRows"]
