"""Errors of steps at work: the user's code, state, and how state is stored."""

from __future__ import annotations

from headwater.errors.roots import HeadwaterError, short
from headwater.moments import moment_text


class UserCodeError(HeadwaterError):
    """User code raised: which step, for which key, at which time, and the user's own traceback on top."""

    def __init__(self, step: str, key: object, timestamp: int | None, cause: str, traceback: str) -> None:
        self.step, self.key, self.timestamp, self.cause, self.traceback = step, key, timestamp, cause, traceback
        where = f"step {step!r} failed"
        if key is not None:
            where += f" for key {key if isinstance(key, str) and key.startswith('<') else short(key)}"
        if timestamp is not None:
            where += f" at timestamp {timestamp}, {moment_text(timestamp)}"
        super().__init__(f"{where}: {cause}\n{traceback}".rstrip())

    @classmethod
    def timed_out(cls, step: str, row: object, timestamp: int | None, timeout_ms: int | None) -> UserCodeError:
        way_out = "raise timeout=, or send such rows to a side output with timeout_to=hw.OutputTag(...)"
        return cls(step, None, timestamp, f"no result within {timeout_ms} ms for {short(row)}; {way_out}", "")

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.step, self.key, self.timestamp, self.cause, self.traceback))


class StateError(HeadwaterError):
    """State used or declared wrongly."""

    @classmethod
    def bad_default(cls, name: str, default: object, dtype: object, why: str) -> StateError:
        return cls(f"state {name!r}: default {short(default)} does not fit {dtype}: {why}")

    @classmethod
    def value_does_not_fit(cls, step: str, name: str, key: object, value: object, why: str) -> StateError:
        return cls(f"step {step!r}, state {name!r}, key {short(key)}: value {short(value)} does not fit: {why}")

    @classmethod
    def not_open(cls, name: str) -> StateError:
        return cls(
            f"state {name!r} is reachable only while the job runs the function; it was used outside process or on_timer, "
            f"or it is broadcast state, which ctx.broadcast_state gives"
        )

    @classmethod
    def no_key(cls) -> StateError:
        return cls(
            "keyed state is reachable only in process and on_timer, where there is a current key; it was used in open, "
            "or in process_broadcast, where ctx.apply_to_keyed_state goes through the keys"
        )

    @classmethod
    def misused(cls, step: str, rule: str, action: str) -> StateError:
        return cls(f"step {step!r}: {rule}; {action}")

    @classmethod
    def disk_failed(cls, step: str, folder: str, why: str) -> StateError:
        return cls(
            f"step {step!r} cannot keep its state in {folder}: {why}; make room there, let temporary files go to another "
            f"disk (spark.local.dir on Spark, TMPDIR elsewhere), or run the job with state_backend='memory'"
        )

    @classmethod
    def declared_twice(cls, step: str, name: str) -> StateError:
        return cls(f"step {step!r} declares the state {name!r} twice; give one of them another name")

    @classmethod
    def bad_key_type(cls, step: str, dtype: object) -> StateError:
        return cls(
            f"step {step!r} cannot use {dtype} as a key: its equality is not exact or it is not hashable; "
            f"cast it to string or decimal, or use one of its fields"
        )


_BACK = "take the job back with hw.checkpoints(job_dir).rewind(epoch), or restore the job folder from a copy"


class ChangelogError(HeadwaterError):
    """Stored state that cannot be read."""

    @classmethod
    def bad_blob(cls, problem: str) -> ChangelogError:
        return cls(
            f"stored state cannot be read: {problem}; the checkpoint is damaged or was written by another version; {_BACK}"
        )

    def in_record(self, where: str, sequence: int) -> ChangelogError:
        """The same, with the place that the record belongs to."""
        return ChangelogError(f"{where}, record {sequence}: {self}")

    @classmethod
    def bad_payload(cls, problem: str) -> ChangelogError:
        return cls(
            f"rows between two levels cannot be read: {problem}; they were damaged on the way, or another version wrote them; "
            f"install the same version of headwater for the driver and every worker, and start the job again"
        )

    @classmethod
    def missing_sequence(cls, step: str, sequence: int) -> ChangelogError:
        return cls(f"stored state of {step} lacks sequence {sequence}; the checkpoint is damaged; {_BACK}")
