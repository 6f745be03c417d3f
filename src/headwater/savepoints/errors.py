"""What can be wrong with a savepoint. Every text names the folder or file, the reason and the way out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headwater.errors import HeadwaterError


class SavepointError(HeadwaterError):
    """A savepoint that cannot be taken, read or started from."""

    @classmethod
    def not_there(cls, path: Path) -> SavepointError:
        return cls(f"there is no savepoint at {path}; give the folder that job.savepoint(...) wrote")

    @classmethod
    def incomplete(cls, path: Path) -> SavepointError:
        return cls(
            f"the savepoint {path} is incomplete: it has no savepoint.json, which is written last; "
            f"the job was stopped while it wrote it: take another savepoint, in another folder"
        )

    @classmethod
    def of_a_job(cls, path: Path) -> SavepointError:
        return cls(
            f"{path} is the folder of a job, not a savepoint; to go on with that job give it as job_dir, to start another one "
            f"from its state give one of hw.checkpoints({str(path)!r}) or take a savepoint with job.stop(savepoint=...)"
        )

    @classmethod
    def of_a_sink(cls, path: Path) -> SavepointError:
        return cls(
            f"{path} is the output folder of a sink, not a savepoint; give the folder that job.savepoint(...) wrote"
        )

    @classmethod
    def something_else(cls, path: Path, found: str) -> SavepointError:
        return cls(
            f"{path} is not a savepoint: it has no savepoint.json, but {found}; give the folder that job.savepoint(...) wrote"
        )

    @classmethod
    def corrupt(cls, path: Path, why: str) -> SavepointError:
        return cls(
            f"the savepoint file {path} is damaged: {why}; use a copy of the savepoint or an older one, nothing was started"
        )

    @classmethod
    def other_version(cls, path: Path, found: object, known: int) -> SavepointError:
        return cls(
            f"the savepoint {path} has format {found!r}, this Headwater reads format {known}; use the version that wrote it"
        )

    @classmethod
    def replaced(cls, path: Path) -> SavepointError:
        return cls(
            f"the savepoint {path} is not the one that the job was started from; put that one back, or start a new job_dir"
        )

    @classmethod
    def taken(cls, path: Path) -> SavepointError:
        return cls(f"{path} is there already and not empty; a savepoint needs a folder of its own: choose another path")

    @classmethod
    def failed(cls, path: Path, why: str) -> SavepointError:
        return cls(
            f"the savepoint {path} could not be taken: {why}; what was written is not complete and will not be accepted, "
            f"and nothing of the job has changed: mend the cause and take it again"
        )

    @classmethod
    def nothing_committed(cls, job: str, path: Path) -> SavepointError:
        return cls(
            f"the savepoint {path} could not be taken: job {job!r} has not committed an epoch; try again when it has"
        )

    @classmethod
    def not_kept(cls, job: str, path: Path) -> SavepointError:
        return cls(
            f"the savepoint {path} could not be taken: job {job!r} has ended and its folder was temporary; "
            f"take it while the job runs, with job.stop(savepoint=...), or give the environment a job_dir"
        )

    @classmethod
    def does_not_fit(cls, path: Path, problems: Sequence[str]) -> SavepointError:
        listed = "\n".join(f"  - {problem}" for problem in problems)
        return cls(
            f"the program cannot go on from the savepoint {path}:\n{listed}\n"
            f"hw.savepoint.check(path, env) shows all of it; a step with another uid starts without state"
        )

    @classmethod
    def would_drop(cls, path: Path, dropped: Sequence[str]) -> SavepointError:
        return cls(
            f"the savepoint {path} has state that the program has no place for: {', '.join(dropped)}; give the steps the "
            f"uids they had, or say renamed={{old: new}}, or give it up with allow_dropped_state=True"
        )

    @classmethod
    def beyond_end(cls, path: Path, split: str, position: int, end: int) -> SavepointError:
        return cls(
            f"the savepoint {path} has read {split} up to position {position}, where there are only {end} rows: it is not the "
            f"input that was read; give the source its input back, or another uid with allow_dropped_state=True"
        )

    @classmethod
    def bad_rename(cls, old: str, why: str) -> SavepointError:
        return cls(
            f"renamed={{{old!r}: ...}} {why}; write 'step', 'step/state' or 'step/state.column.field', as they were, "
            f"and the new name of the last part"
        )

    @classmethod
    def no_state(cls, path: object, step: str, state: str, known: Sequence[str]) -> SavepointError:
        return cls(f"{path} has no state {state!r} of a step {step!r}; it has {', '.join(known) or 'none'}")

    @classmethod
    def bad_table(cls, step: str, state: str, why: str, columns: str) -> SavepointError:
        return cls(
            f"the table for step {step!r}, state {state!r} does not fit: {why}; the state has the columns {columns}: "
            f"give a table with these"
        )

    @classmethod
    def bad_position(cls, source: str, why: str, known: Sequence[str]) -> SavepointError:
        return cls(
            f"positions for source {source!r} do not fit: {why}; give {{source: {{split: position of the next row}}}} for "
            f"sources of the program, which has {', '.join(known)}"
        )


class Impossible(Exception):
    """Stored values that cannot become what the program declares; the reason is the text."""
