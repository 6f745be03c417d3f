"""Errors of sources and sinks."""

from __future__ import annotations

from headwater.errors.roots import HeadwaterError, short


class PublishError(HeadwaterError):
    """A committed epoch that could not be handed to a sink; it stays staged and is published at the next start."""

    is_transient = True

    @classmethod
    def failed(cls, sink: str, epoch: int, why: str) -> PublishError:
        return cls(
            f"sink {sink!r} could not publish epoch {epoch}: {why}; the epoch stays staged and nothing is lost: "
            f"mend the cause and start the job again"
        )

    @classmethod
    def not_staged(cls, sink: str, epoch: int, why: str) -> PublishError:
        return RowsRefused(
            f"sink {sink!r} cannot take the rows of epoch {epoch}: {why}; the epoch is not committed and nothing is lost: "
            f"drop or mend such rows before the sink, as with .where(...), and start the job again"
        )

    @classmethod
    def sink_is_gone(cls, sink: str, epoch: int) -> PublishError:
        return cls(
            f"epoch {epoch} is committed and its rows for sink {sink!r} are not published, but the program has no such sink; "
            f"start the program that has it once, or remove its lines from the manifest in the outbox to give the rows up"
        )

    @classmethod
    def staged_file_missing(cls, sink: str, path: str) -> PublishError:
        return cls(
            f"sink {sink!r}: the staged file {path} is neither there nor published; it was removed from outside; restore it "
            f"from a copy, or take the job back with hw.checkpoints(job_dir).rewind(epoch) to an epoch before it"
        )

    @classmethod
    def cannot_write(cls, sink: str, output: str, why: str, action: str) -> PublishError:
        return cls(f"sink {sink!r}: {output} cannot be written: {why}; {action}")

    @classmethod
    def output_of_another_job(cls, sink: str, output: str, owner: str, job_id: str, action: str) -> PublishError:
        return cls(
            f"sink {sink!r}: {output} holds the output of another run ({owner}, this one is {job_id}); "
            f"{action}, or start with the job_dir that wrote it"
        )

    @classmethod
    def foreign_files(cls, sink: str, output: str, file: str) -> PublishError:
        return cls(
            f"sink {sink!r}: {output} has files that no job has written there, such as {file}, and readers would take them for "
            f"output; use an empty folder, or move them elsewhere"
        )

    @classmethod
    def published_after(cls, sink: str, output: str, epoch: int, found: str, action: str) -> PublishError:
        return cls(
            f"sink {sink!r}: {output} has output from after the savepoint, which is of epoch {epoch} ({found}); "
            f"its rows would come twice: {action}"
        )

    @classmethod
    def handed_over(cls, sink: str, output: str, epoch: int, job_id: str) -> PublishError:
        return cls(
            f"sink {sink!r}: {output} was handed over to job {job_id}, which goes on from the savepoint of epoch "
            f"{epoch} of this job; start that job with its job_dir; or to go back, start this program from the savepoint in "
            f"a new job_dir; or let this job write elsewhere"
        )


class RowsRefused(PublishError):
    """Rows that an output could not be given, found when they were staged, so before their epoch was committed."""

    is_transient = False


class SourceError(HeadwaterError):
    """A source that cannot be read."""

    is_transient = True

    @classmethod
    def schema_mismatch(cls, source: str, expected: str, found: str) -> SourceError:
        return cls(
            f"source {source} has the schema '{found}', the job declares '{expected}'; change the job's schema to fit"
        )

    @classmethod
    def at_step(cls, step: str, problem: str, action: str) -> SourceError:
        return cls(f"step {step!r}: {problem}; {action}")

    @classmethod
    def unreadable(cls, what: str, problem: str, action: str) -> SourceError:
        return cls(f"{what} cannot be read: {problem}; {action}")

    @classmethod
    def bad_timestamp(cls, source: str, column: str, found: str, row: object) -> SourceError:
        return cls(
            f"source {source}: the event-time column {column!r} is {found} in {short(row)}; filter such rows out before the "
            f"log, or take another column for the watermarks"
        )
