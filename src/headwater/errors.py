"""Every error Headwater raises on purpose.

A message says the subject and the rule, then the fact, then the next action. The facts are attributes, so that callers
need not parse text. Texts live here, in classmethods, so that one read of this file shows what a user can meet.
"""

from __future__ import annotations

from headwater.moments import moment_text, unit_meant


class HeadwaterError(Exception):
    """The root of all errors raised by Headwater."""

    is_final = False
    """Whether a job that fails with it would fail again however often it is started in this process."""
    is_transient = False
    """Whether it may pass by itself in a moment; a task that fails with any other is not tried again."""


class DurationError(HeadwaterError, ValueError):
    """A duration that cannot be read."""

    @classmethod
    def not_a_duration(cls, what: str, value: object) -> DurationError:
        return cls(
            f"{what} must be a duration; got {value!r}; write it as '10 s', '1 min 30 s', '250 ms' or a timedelta"
        )

    @classmethod
    def negative(cls, what: str, value: object) -> DurationError:
        return cls(f"{what} must not be negative; got {value!r}")

    @classmethod
    def too_long(cls, what: str, value: object) -> DurationError:
        return cls(f"{what} must fit 64 bits of milliseconds, 292 million years; got {value!r}; choose a shorter one")

    @classmethod
    def finer_than_a_millisecond(cls, what: str, value: object) -> DurationError:
        return cls(f"{what} must be whole milliseconds; got {value!r}")


class SchemaError(HeadwaterError, ValueError):
    """A schema that cannot be read or does not fit."""

    @classmethod
    def not_a_schema(cls, given: object) -> SchemaError:
        return cls(
            f"a schema is DDL text such as 'user string, amount double' or a pyarrow.Schema; got {type(given).__name__}"
        )

    @classmethod
    def bad_ddl(cls, text: str, at: int, problem: str) -> SchemaError:
        return cls(f"schema cannot be read: {problem}, at position {at}\n  {text}\n  {' ' * at}^")

    @classmethod
    def empty(cls, text: str) -> SchemaError:
        return cls(f"a schema needs at least one field; got {text!r}")

    @classmethod
    def duplicate_field(cls, name: str, text: str) -> SchemaError:
        return cls(f"field names must be unique; {name!r} appears twice in {text!r}")

    @classmethod
    def reserved_name(cls, name: str) -> SchemaError:
        return cls(f"field names must not start with two underscores (kept for the runtime); got {name!r}; rename it")

    @classmethod
    def unsupported_type(cls, name: str, known: list[str]) -> SchemaError:
        return cls(f"type {name!r} is not supported; use one of {', '.join(known)}")

    @classmethod
    def no_field(cls, name: str, names: list[str], step: str = "") -> SchemaError:
        subject = f"step {step!r}: " if step else ""
        return cls(f"{subject}there is no field {name!r}; the fields are {', '.join(names)}")

    @classmethod
    def of_column(cls, name: str, where: str, error: object) -> SchemaError:
        return cls(f"column {name!r}{where}: {error}")

    @classmethod
    def does_not_fit(cls, step: str, problem: str, action: str) -> SchemaError:
        return cls(f"step {step!r}: {problem}; {action}")


class GraphError(HeadwaterError, ValueError):
    """A job graph that must not run; raised while it is built, before any engine starts."""

    @classmethod
    def duplicate_uid(cls, uid: str, first: str, second: str) -> GraphError:
        return cls(
            f"uids of steps must be unique; {uid!r} is the uid of {first} and of {second}; "
            f"give one of them another with .with_uid(...)"
        )

    @classmethod
    def bad_uid(cls, uid: object) -> GraphError:
        return cls(f"a uid is made of letters, digits, '_', '-' and '.', at most 100 of them; got {uid!r}")

    @classmethod
    def nothing_to_run(cls, job: str) -> GraphError:
        return cls(f"job {job!r} has no sink, so nothing would run; end a stream with .sink(...) or .collect()")

    @classmethod
    def no_input(cls, title: str) -> GraphError:
        return cls(f"every step but a source needs an input; {title} has none; build steps on streams")

    @classmethod
    def needs_keyed(cls, step: str, got: str) -> GraphError:
        return cls(f"step {step!r} needs a keyed stream; got {got}; call .key_by(...) first")

    @classmethod
    def needs_event_time(cls, step: str, source: str, otherwise: str) -> GraphError:
        return cls(
            f"step {step!r} works in event time, and the rows of source {source!r} have none; give the source "
            f"watermarks, such as hw.Watermarks.bounded('time', '5 s'), or {otherwise}"
        )

    @classmethod
    def only_keyed(cls, method: str, got: str, instead: str) -> GraphError:
        return NotKeyed(f".{method}(...) needs a keyed stream; got {got}; call .key_by(...) first{instead}")

    @classmethod
    def shared_output(cls, first: str, second: str, output: str) -> GraphError:
        return cls(
            f"sinks {first!r} and {second!r} both write to {output}; an output belongs to one sink: "
            f"give each its own, or union the streams before one sink"
        )

    @classmethod
    def not_shippable(cls, step: str, what: str, kind: str, why: str, *, opens: bool) -> GraphError:
        place = "in open(), which is called where the function runs" if opens else "where it is used"
        otherwise = "" if opens else ", or in open() of a process function"
        return cls(
            f"step {step!r} goes to workers as a copy, and {what} ({kind}) cannot be copied: {why}; "
            f"make it {place}{otherwise}"
        )

    @classmethod
    def other_environment(cls, step: str) -> GraphError:
        return cls(f"step {step!r} joins streams of two environments; build both from the same hw.Environment")

    @classmethod
    def half_trigger(cls, trigger: str, missing: list[str]) -> GraphError:
        return cls(
            f"trigger {trigger!r} must say of rows one by one and of many at once in one class; "
            f"it has no {' and no '.join(missing)} of its own; "
            f"write on_element, on_rows and rows_to_fire, or on_element alone"
        )

    @classmethod
    def takes_no_changes(cls, step: str, got: str) -> GraphError:
        return cls(
            f"step {step!r} takes rows that are only added; got a changelog ({got}); "
            f"call .with_row_kind() before it: changes are rows then, with a column row_kind that says what each does"
        )

    @classmethod
    def bad_argument(cls, step: str, rule: str, fact: object, action: str) -> GraphError:
        return cls(f"step {step!r} {rule}; got {fact!r}; {action}")


class NotKeyed(GraphError, AttributeError):
    """What only a keyed stream can do, asked of another one."""


class RowError(HeadwaterError, ValueError):
    """A row or value that does not fit the schema of the step that made it."""

    @classmethod
    def value_does_not_fit(cls, step: str, field: str, value: object, dtype: object, why: str) -> RowError:
        return cls(f"step {step!r}, field {field!r}: value {short(value)} does not fit {dtype}: {why}")

    @classmethod
    def wrong_fields(cls, step: str, row: dict[str, object], names: list[str]) -> RowError:
        missing = [n for n in names if n not in row]
        unknown = [str(n) for n in row if n not in names]
        facts = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"has unknown {', '.join(unknown)}"] * bool(unknown)
        return cls(
            f"step {step!r}: row {short(row)} {' and '.join(facts)}; its schema has the fields {', '.join(names)}"
        )

    @classmethod
    def wrong_length(cls, step: str, row: object, names: list[str]) -> RowError:
        return cls(f"step {step!r}: row {short(row)} must have {len(names)} values, for {', '.join(names)}")

    @classmethod
    def not_a_row(cls, step: str, row: object, names: list[str]) -> RowError:
        return cls(
            f"step {step!r}: expected a dict or tuple with {', '.join(names)}; got {short(row)} "
            f"({type(row).__name__}); yield rows, not bare values"
        )

    @classmethod
    def wrong_result(cls, step: str, rule: str, fact: object, action: str) -> RowError:
        return cls(f"step {step!r}: the function must return {rule}; got {fact}; {action}")

    @classmethod
    def other_tag(cls, step: str, tag: str, written: str, read: str) -> RowError:
        return cls(
            f"step {step!r}: side output {tag!r} is written as '{written}' and read as '{read}'; use one OutputTag"
        )

    @classmethod
    def no_event_time(cls, step: str) -> RowError:
        return cls(
            f"step {step!r} works in event time, and a row has none; give the source watermarks, "
            "call .assign_watermarks(...) on the stream, or work in processing time"
        )

    @classmethod
    def null_time(cls, step: str, column: str) -> RowError:
        return cls(
            f"step {step!r} takes event time from {column!r}, which must not be null; a row has none there; "
            f"drop such rows first, with .where('{column} is not null')"
        )

    @classmethod
    def beyond_datetimes(cls, micros: int) -> RowError:
        return cls(
            f"a timestamp is {micros} microseconds from 1970, and Python's datetimes end with the year 9999; "
            f"{unit_meant(micros // 1000) or 'filter such rows out, or keep the time as a bigint'}"
        )

    @classmethod
    def row_count(cls, step: str, before: int, after: int) -> RowError:
        return cls(
            f"step {step!r}: the function got {before} rows and returned {after}, so their event times are unknown; "
            f"return one row per row or name the time column with timestamp=..."
        )


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


class JobError(HeadwaterError):
    """A job that cannot start or go on."""

    @classmethod
    def folder_in_use(cls, folder: str, owner: str, *, is_own: bool) -> JobError:
        who = "another job of this process" if is_own else f"another process ({owner or 'unknown'})"
        return cls(f"job folder {folder} is in use by {who}; stop that job first or use another job_dir")

    @classmethod
    def no_job(cls, folder: str) -> JobError:
        return cls(
            f"{folder} is not the folder of a job: it has no job.json; name the job_dir of a job that has run on Spark"
        )

    @classmethod
    def not_running(cls, job: str, folder: str) -> JobError:
        return cls(f"job {job!r} in {folder} can be asked while it runs, and no process runs it; start it first")

    @classmethod
    def request_failed(cls, folder: str, what: str, why: str) -> JobError:
        return cls(f"the job in {folder} was asked for a {what}, which failed: {why}\nmend the cause and ask again")

    @classmethod
    def no_answer(cls, folder: str, what: str, fact: str) -> JobError:
        return cls(
            f"the job in {folder} was asked for a {what} and has not answered: {fact}; look at its status, then ask again"
        )

    @classmethod
    def no_checkpoint(cls, folder: str, epoch: int | None, retained: list[int]) -> JobError:
        what = "no checkpoint" if epoch is None else f"no checkpoint of epoch {epoch}"
        kept = f"choose one of {_ranges(retained)}" if retained else "none is retained yet: let the job commit an epoch"
        return cls(f"job folder {folder} has {what}; {kept}")

    @classmethod
    def damaged_checkpoint(cls, folder: str, epoch: int, file: str, problem: str, sound: int | None) -> JobError:
        back = f"take the job back with hw.checkpoints({folder!r}).rewind({sound}), or " if sound is not None else ""
        return JobFolderDamaged(
            f"checkpoint of epoch {epoch} is damaged: {file} cannot be used: {problem}; "
            f"{back}restore the file from a copy of the job folder"
        )

    @classmethod
    def cut_elsewhere(cls, folder: str, epoch: int, unaligned: int) -> JobError:
        return cls(
            f"job folder {folder} cannot go back to epoch {epoch}: epoch {unaligned} is unaligned and sinks have its rows; how "
            f"many of them wait for the next epoch depends on measured time, so they would not be the same again; "
            f"choose epoch {unaligned - 1} or later"
        )

    @classmethod
    def offsets_lost(cls, file: str, epoch: int, published: int) -> JobError:
        return cls(
            f"epoch {epoch} cannot be computed again as it was: {file} cannot be read, its content is nowhere else, and sinks "
            f"have the rows of the epochs up to {published}; restore it from a copy of the job folder, together with all other "
            f"files that are older than the outbox"
        )

    @classmethod
    def other_program(cls, folder: str, differences: list[str]) -> JobError:
        facts = "; ".join(differences)
        return cls(
            f"job folder {folder} was written by a program of another shape: {facts}; "
            f"run the old program, or take a savepoint with it and start the new one from that: env.run(from_=...)"
        )

    @classmethod
    def has_a_job(cls, folder: str, savepoint: str) -> JobError:
        return cls(
            f"job folder {folder} holds a job that was not started from the savepoint {savepoint} with these names; to go on "
            f"from the savepoint use a new job_dir, to go on with the job leave from_ out"
        )

    @classmethod
    def not_retained(cls, job: str, epoch: int | None, known: list[int]) -> JobError:
        if not known:
            return cls(
                f"job {job!r} has not committed an epoch yet, so there is no state to look at; "
                f"ask again when job.status().published has moved"
            )
        wanted = "a committed epoch" if epoch is None else f"epoch {epoch}"
        kept = f"epochs {known[0]} to {known[-1]}"
        return cls(f"job {job!r} does not have {wanted} any more or yet; it has {kept}; ask for one of these")

    @classmethod
    def finished(cls, folder: str, epoch: int) -> JobError:
        return cls(
            f"the job in {folder} reached the end of its input in epoch {epoch}, its watermark is at its maximum, and there is "
            f"new input; read it with a new job_dir, there with env.run(available_now=True) if it is to be run again and again"
        )

    @classmethod
    def corrupt(cls, path: str, problem: str) -> JobError:
        damage = f"{path} cannot be read: {problem}"
        error = JobFolderDamaged(f"{damage}; restore it from a copy of the job folder, or start in an empty job_dir")
        error.damage = damage
        return error

    @classmethod
    def newer_format(cls, path: str, found: int, known: int) -> JobError:
        return NewerFormat(
            f"{path} cannot be read: it is of version {found}, and this Headwater knows versions up to {known}; "
            f"use the newer Headwater that wrote it"
        )

    @classmethod
    def engine_failed(cls, job: str, message: str) -> JobError:
        return cls(
            f"job {job!r} stopped: {message}\n"
            f"when the cause is mended, start the job again: it goes on from its last committed epoch; "
            f"log_level='debug' tells more"
        )

    @classmethod
    def worker_lacks(cls, module: str) -> JobError:
        return cls(
            f"a worker cannot import {module!r}, which the driver can; install it for the Python of every worker, or ship it "
            f"with the Spark setting spark.submit.pyFiles"
        )

    @classmethod
    def not_supported(cls, what: str, action: str) -> JobError:
        return cls(f"{what}; {action}")


class JobFolderDamaged(JobError):
    """A file of the job folder that is not what was written."""

    is_final = True
    damage = ""
    """Which file it is, and what is wrong with it."""


class NewerFormat(JobError):
    """What a newer Headwater has stored."""

    is_final = True


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


def _ranges(numbers: list[int]) -> str:
    """Numbers in order, with those that follow each other as a range: 1, 4-7."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][-1] == number - 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ", ".join("-".join(map(str, part)) for part in parts)


def short(value: object, limit: int = 200) -> str:
    """A value as errors show it."""
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


class JavaMissing(HeadwaterError):
    """No Java on this machine can run Spark."""

    def __init__(self, message: str, found: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.found = found

    @classmethod
    def among(cls, found: list[str], oldest: int) -> JavaMissing:
        return cls(
            f"Spark needs Java {oldest} or newer; found {'; '.join(found) or 'none'}; "
            f"install one (Debian: sudo apt-get install openjdk-{oldest}-jre-headless) or set JAVA_HOME to its folder",
            tuple(found),
        )
