"""What can be wrong with windows and triggers while rows go into them."""

from __future__ import annotations

from headwater.errors import RowError, short
from headwater.moments import unit_meant


class WindowError(RowError):
    """A row that windows cannot take, or what a user's assigner or trigger gave for it."""

    @classmethod
    def beyond_time(cls, step: str, timestamp: int, row: object) -> WindowError:
        return cls(
            f"step {step!r}: windows reach to 292,000 years from 1970, and that of a row at timestamp {timestamp} would lie "
            f"beyond: {short(row)}; {unit_meant(timestamp) or 'filter such rows out before the step'}"
        )

    @classmethod
    def not_windows(cls, step: str, assigner: str, given: object) -> WindowError:
        return cls(
            f"step {step!r}: assign of {assigner} must give windows; got {short(given)}; "
            f"return a list such as [hw.Window(start, end)], or [] for a row that is in none"
        )

    @classmethod
    def bad_window(cls, step: str, assigner: str, window: object, row: object) -> WindowError:
        return cls(
            f"step {step!r}: a window ends after its start, and both are within 292,000 years of 1970, in milliseconds; "
            f"{assigner} gave {window!r} for {short(row)}; mend assign"
        )

    @classmethod
    def not_a_trigger_result(cls, step: str, method: str, given: object) -> WindowError:
        return cls(
            f"step {step!r}: {method} must return a hw.TriggerResult; got {short(given)}; "
            f"end it with return hw.TriggerResult.CONTINUE, or FIRE"
        )
