"""For users' tests: `hw.testing.Harness` drives a piece of a job by hand."""

from headwater.testing.harness import Harness

__all__ = ["Harness"]
