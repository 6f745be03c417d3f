"""Errors of jobs and their folders."""

from __future__ import annotations

from headwater.errors.roots import HeadwaterError, short


class JobError(HeadwaterError):
    """A job that cannot start or go on."""

    @classmethod
    def folder_in_use(cls, folder: str, owner: str, *, is_own: bool) -> JobError:
        who = "another job of this process" if is_own else f"another process ({owner or 'unknown'})"
        return cls(f"job folder {folder} is in use by {who}; stop that job first or use another job_dir")

    @classmethod
    def no_job(cls, folder: str, *, is_there: bool = True) -> JobError:
        fact = "it has no job.json" if is_there else "there is no such folder"
        return cls(
            f"{folder} is not the folder of a job: {fact}; name the job_dir of a job that has run on Spark; "
            f"headwater list FOLDER  finds those below a folder"
        )

    @classmethod
    def no_folder(cls, folder: str) -> JobError:
        return cls(f"jobs are looked for in a folder; there is no folder {folder}; name one, or none for this one")

    @classmethod
    def started_while_loaded(cls, program: str) -> JobError:
        return cls(
            f"{program} must not run its job while it is loaded, as who loads it does that; it calls run, start, collect or "
            f"show; put the call under  if __name__ == '__main__':"
        )

    @classmethod
    def no_file(cls, file: str) -> JobError:
        return cls(f"a job is a Python file; there is no file {file}; name one, or make one with  headwater new FOLDER")

    @classmethod
    def no_dashboard(cls) -> JobError:
        return cls(
            "--ui shows the job in a browser; its dashboard could not start, so the job was not started; mend what was "
            "said above, or leave --ui out"
        )

    @classmethod
    def no_program(cls, file: str, fact: str) -> JobError:
        return cls(
            f"{file} must have a function build(env), or make one hw.Environment, at its top level; {fact}; "
            f"see  headwater new --help  for one that does"
        )

    @classmethod
    def not_loaded(cls, file: str, trace: str) -> JobError:
        return cls(f"{file} could not be loaded; mend it and run it again\n{trace}")

    @classmethod
    def bad_query(cls, text: str, problem: str) -> JobError:
        return cls(
            f"the query {short(text, 1000)} over the table state failed: {problem}; "
            "its columns are those that are shown without it"
        )

    @classmethod
    def query_too_long(cls, seconds: float) -> JobError:
        return cls(f"the query over the table state took longer than {seconds} s; ask for less")

    @classmethod
    def no_windows(cls, step: str, known: list[str]) -> JobError:
        there = f"those with windows are {', '.join(known)}" if known else "no step of the job has windows"
        return cls(f"step {step!r} has no windows that could fire; {there}")

    @classmethod
    def bad_savepoint_name(cls, name: str) -> JobError:
        return cls(
            f"a savepoint is named by up to 64 letters, digits, '-' and '_'; got {short(name)}; choose such a name"
        )

    @classmethod
    def no_log(cls, folder: str) -> JobError:
        return cls(
            f"the job in {folder} has no log: it is written for jobs that  headwater run  starts; "
            f"another program writes what it logs where its logging says"
        )

    @classmethod
    def needs_program(cls, job: str, job_dir: str) -> JobError:
        return cls(
            f"state of a job that does not run is read with its program, which says what it is; job {job!r} in {job_dir} does "
            "not run; name its file with --file"
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


class StateBudgetExceeded(JobError):
    """A step that has come to keep more state than its budget allows. The epoch in which it did was not committed."""

    is_final = True

    def __init__(self, message: str, step: str = "", used_bytes: int = 0, budget_bytes: int = 0) -> None:
        super().__init__(message)
        self.step, self.used_bytes, self.budget_bytes = step, used_bytes, budget_bytes

    @classmethod
    def of(
        cls, step: str, epoch: int, used_bytes: int, budget_bytes: int, ways: tuple[str, ...]
    ) -> StateBudgetExceeded:
        from headwater.sizes import size_text

        bound = f"bound what it keeps ({'; or '.join(ways)}), or " if ways else ""
        return cls(
            f"step {step!r} may keep {size_text(budget_bytes)} of state and has come to {size_text(used_bytes)} in epoch "
            f"{epoch}, which was not committed: nothing is lost, and the job goes on from the epoch before it; "
            f"{bound}give it a larger state_budget and start the job again",
            step,
            used_bytes,
            budget_bytes,
        )


class NewerFormat(JobError):
    """What a newer Headwater has stored."""

    is_final = True


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


def _ranges(numbers: list[int]) -> str:
    """Numbers in order, with those that follow each other as a range: 1, 4-7."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][-1] == number - 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ", ".join("-".join(map(str, part)) for part in parts)
