"""For users' tests: `verify` runs a job in many ways which must come to the same, `Harness` drives a piece of it by hand.

`TimedRows` is input that comes at given times. `check_source`, `check_sink`, `check_trigger` and `check_assigner` tell
whether a connector, a trigger or a window assigner keeps its contract.
"""

from headwater.testing.conformance import NotConforming, check_assigner, check_sink, check_source, check_trigger
from headwater.testing.harness import Harness
from headwater.testing.timed_rows import TimedRows
from headwater.testing.verification import UnfitInput, VerificationFailed, Verified, verify

__all__ = [
    "Harness",
    "NotConforming",
    "TimedRows",
    "UnfitInput",
    "VerificationFailed",
    "Verified",
    "check_assigner",
    "check_sink",
    "check_source",
    "check_trigger",
    "verify",
]
