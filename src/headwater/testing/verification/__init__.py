"""Whether a job gives the same however it runs."""

from headwater.testing.verification.failure import UnfitInput, VerificationFailed
from headwater.testing.verification.oracle import Verified, verify

__all__ = ["UnfitInput", "VerificationFailed", "Verified", "verify"]
