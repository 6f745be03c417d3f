"""A job that is attempted again after a failure, as its restart strategy says; what an attempt is, engines know."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from abc import ABC, abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from headwater.durable import append_line
from headwater.epoch.protocol import Claim, Computed, EpochProtocol
from headwater.errors import HeadwaterError, JobError
from headwater.graph.picture import picture
from headwater.job.analysis_text import analysis_text
from headwater.job.checkpoints.history import read_history
from headwater.job.durations import DurationsFile
from headwater.job.engine import Settings
from headwater.job.growth.course import StateCourse
from headwater.job.growth.explanation import StateExplanation, growth_by_step, measured_state
from headwater.job.growth.text import growth_text, seen_text
from headwater.job.growth.watch import BudgetWatch, StateMoves
from headwater.job.layout import JobLayout
from headwater.job.listener import Listener
from headwater.job.logbook import Logbook
from headwater.job.notices import Notices
from headwater.job.outline import outline_of
from headwater.job.progress.standstill import EventTimeWatch
from headwater.job.reading import SHOWN_RESTARTS
from headwater.job.requests import JobAnswer
from headwater.job.status import JobStatus, RestartReason
from headwater.job.status_html import status_html
from headwater.job.status_text import summary
from headwater.job.watching import JobWatcher, watching
from headwater.plan.plan import JobPlan
from headwater.savepoints.errors import SavepointError
from headwater.savepoints.files import Savepoint, free_folder
from headwater.savepoints.origin import Origin
from headwater.words import EngineName

if TYPE_CHECKING:
    from headwater.job.checkpoints.listing import Checkpoints
    from headwater.job.state_view import StateView

_FIRST_EPOCH_S = 60
"""How long a savepoint waits for a job that has just been started."""
_POLL_S = 0.02
_MESSAGE_CHARACTERS = 4000
"""Enough for a user's traceback; Spark's own errors can be much longer."""


class SupervisedJob(ABC):
    """A job in a thread of its own: attempts, the waits between them, and how it all ended."""

    engine: EngineName

    def __init__(self, plan: JobPlan, settings: Settings, layout: JobLayout | None = None) -> None:
        """With the layout of a job folder, reasons of restarts outlive the process, and others can watch and ask the job."""
        self.name = plan.graph.name
        self._plan, self._settings = plan, settings
        self._logbook = Logbook(plan, settings, None if layout is None else DurationsFile(layout.durations))
        self._protocol = EpochProtocol(
            plan, self, self._logbook.watching(watching(settings.watchers, settings.on_step))
        )
        self._begun: list[JobWatcher] = []
        self._notices = Notices(self.name)
        self._event_time = None if settings.bounded else EventTimeWatch(plan)
        self._course = StateCourse()
        self._budgets = BudgetWatch(plan, lambda uid: growth_text(self.explain_state()[uid]))
        if plan.budgets and layout is not None:
            self._budgets.spill(_newest_sizes(layout))
        self._status = JobStatus("running")
        self._before: tuple[int, JobStatus] | None = None
        """The newest epoch that was computed, and the status before it."""
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._draining = threading.Event()
        self._last_folder: Path | None = None
        self._last_savepoint: Savepoint | Exception | None = None
        self._wants_aligned = threading.Event()
        self._stops_aligned = threading.Event()
        self.given_up: str | None = None
        self._error: Exception | None = None
        self._ended = threading.Event()
        """Set as the last act of the job's thread. To join a thread is no way to wait: an interrupt may mark it as ended."""
        self._layout = layout
        self._file = None if layout is None else layout.restarts
        self._listener = None if layout is None else Listener(layout, self)
        self._thread = threading.Thread(target=self._run, name=f"headwater-{self.name}", daemon=True)

    def __repr__(self) -> str:
        return f"<Job {self.name} {summary(self.status())}>"

    def _repr_html_(self) -> str:
        """In a notebook: the graph, and where the job stands."""
        return status_html(self.name, self.status(), picture(self._plan.graph))

    def launch(self) -> Self:
        """Start the job, or let go of everything when that fails."""
        try:
            self.start()
        except BaseException:
            self.abandon()
            raise
        return self

    def start(self) -> None:
        """Start the first attempt and return."""
        for watcher in self._settings.watchers:
            watcher.begin(self)
            self._begun.append(watcher)
        if self._listener is not None:
            self._describe()
            self._listener.start()
        self._thread.start()

    def _describe(self) -> None:
        """Leave in the job folder what this run is, for who looks at it."""
        assert self._layout is not None
        now_ms = self._settings.restart_time.now_ms()
        with contextlib.suppress(OSError):  # it is there to be looked at: a job goes on without
            outline_of(self._plan, self._settings, self.engine, now_ms).write(self._layout.outline)

    def wait(self, timeout: float | None = None) -> bool:
        has_ended = self._ended.wait(timeout)
        if self._error is not None:
            raise _without_ours(self._error)
        return has_ended

    def stop(self, *, savepoint: str | os.PathLike[str] | None = None, drain: bool = False) -> Path | None:
        folder = None if savepoint is None else free_folder(Path(savepoint))
        self.begin_stop(folder, drain=drain)
        self._ended.wait()
        if folder is None:
            return None
        if self._error is not None:
            raise _without_ours(self._error)
        saved, self._last_savepoint = self._last_savepoint, None
        if isinstance(saved, Exception):
            raise saved
        if saved is None or saved.path != folder:  # a job that had ended before saved nothing, or elsewhere
            saved = self._timed_save(folder)
        return saved.path

    def begin_stop(self, savepoint: Path | None, *, drain: bool) -> None:
        """Let the job stop, and save its state at the end if a folder is given; returns before it has."""
        if savepoint is not None:
            self._last_folder = free_folder(savepoint)
        if drain:
            self._draining.set()
        elif savepoint is not None and self._settings.unaligned_ms is not None:
            self._stops_aligned.set()
            self.request_aligned_epoch()
        else:
            self._stopping.set()

    def savepoint(self, path: str | os.PathLike[str]) -> Path:
        return self._timed_save(free_folder(Path(path))).path

    def _reach_alignment(self) -> None:
        """Called when an epoch that was to leave nothing in flight has done so, before the next one is planned."""
        self._wants_aligned.clear()
        if self._stops_aligned.is_set():
            self._stopping.set()

    def request_aligned_epoch(self) -> None:
        """Let the next epoch that is planned leave nothing in flight; `status().aligned_epoch` tells when one has.

        It reads nothing and takes as long as what is in flight takes. Where epochs are aligned, the next one is as ever.
        """
        self._wants_aligned.set()

    def status(self) -> JobStatus:
        return self._status

    def explain_analyze(self) -> str:
        return analysis_text(self._status)

    def explain_state(self) -> StateExplanation:
        status = self._status
        return measured_state(self._plan, self._course, status, seen_text(status))

    def _note(self, **facts: Any) -> None:
        """Change what the status says."""
        with self._lock:
            self._status = replace(self._status, **facts)

    @abstractmethod
    def state(self, uid: str, name: str, *, epoch: int | None = None) -> StateView:
        """A state of a step at an epoch."""

    @abstractmethod
    def checkpoints(self) -> Checkpoints:
        """The checkpoints that are retained now."""

    @abstractmethod
    def _attempt(self, *, again: bool) -> str:
        """Run from the last committed epoch until the job has 'finished' or, because `_stopping` is set, is 'stopped'."""

    @abstractmethod
    def claim(self, origin: Origin | None) -> Claim:
        """Make the job this engine's own."""

    @abstractmethod
    def is_committed(self, epoch: int) -> bool:
        """Whether an epoch that has a manifest counts."""

    def recovered(self, epoch: int | None) -> None:
        newest = -1 if epoch is None else epoch
        if self._event_time is not None:
            self._event_time.begin()
        self._note(epoch=newest, published=newest)
        self._logbook.begins(self.engine, epoch)

    def admit(self, epoch: int, what: Computed) -> None:
        self._budgets.admit(epoch, what.reports)

    def computed(self, epoch: int, what: Computed) -> None:
        self._notices.hear(what.reports)
        with self._lock:
            if self._before is None or self._before[0] != epoch:
                self._before = epoch, self._status
            steps, splits = self._before[1].steps, self._before[1].splits  # an epoch that is computed again counts once
            after = replace(self._status, steps=steps, splits=splits).after(epoch, what.reports, what.now_ms)
            if self._course.hear(after):
                growth = growth_by_step(self._plan, self._course, after)
                grown = {uid: replace(step, growth=growth.get(uid, step.growth)) for uid, step in after.steps.items()}
                after = replace(after, steps=grown)
            self._status = replace(after, positions=what.positions)
        if self._event_time is not None:
            self._event_time.see(after.splits, what.now_ms)

    def handed_over(self, epoch: int) -> None:
        self._note(published=epoch)

    def _wait_until_published(self, path: Path) -> None:
        """Wait for the first epoch that can be saved, as long as the job is on its way to it."""
        deadline = time.monotonic() + _FIRST_EPOCH_S
        while self._protocol.published < self._protocol.first_epoch:
            if not self._goes_on_beside() or time.monotonic() > deadline:
                raise SavepointError.nothing_committed(self.name, path)
            time.sleep(_POLL_S)

    def _goes_on_beside(self) -> bool:
        """Whether the job runs, on a thread that is not the one that asks."""
        return not self._ended.is_set() and self._thread is not threading.current_thread()

    def _timed_save(self, path: Path) -> Savepoint:
        began_s = time.monotonic()
        saved = self._save(path)
        self._logbook.saved(saved, time.monotonic() - began_s)
        return saved

    @abstractmethod
    def _save(self, path: Path) -> Savepoint:
        """Write the newest published epoch into a new folder."""

    @abstractmethod
    def release(self) -> None:
        """Let go of what all attempts share, beside sinks."""

    def abandon(self) -> None:
        """Let go of everything, when the job could not be started."""
        with contextlib.suppress(Exception):  # what kept it from starting is what counts
            self._protocol.close()
        self.release()
        self._end_watches()

    def _end_watches(self) -> None:
        for watcher in self._begun:
            with contextlib.suppress(Exception):  # how the job ended is what counts
                watcher.end()

    def _run(self) -> None:
        try:
            self._run_to_its_end()
        finally:
            self._end_watches()
            self._ended.set()

    def _run_to_its_end(self) -> None:
        state, error, told = "failed", None, None
        try:
            state = self._life()
        except Exception as raised:  # handed to whoever waits
            state, error, told = "failed", raised, "\n".join([str(raised), *getattr(raised, "__notes__", ())])
        finally:
            if self._listener is not None:
                last = replace(self._status, state=state, error=told)
                self._listener.close(last, waits=self._settings.unaligned_ms is None)
            self.release()
        self._error = error
        self._note(state=state, error=told)
        self._logbook.ended(self._status)
        if self._listener is not None:
            self._listener.finish(self._last_answer())

    def _life(self) -> str:
        """All attempts, and what is done when they are over; returns how they ended."""
        try:
            state = self._attempts()
            self._notices.end()
            self._protocol.flush()
            self._save_last()
        except BaseException:
            with contextlib.suppress(Exception):  # what made the job fail is what counts
                self._protocol.close()
            raise
        self._protocol.close()
        return state

    def _save_last(self) -> None:
        """Write the savepoint that the job was stopped with; its failure is that of the stop, not of the job."""
        if self._last_folder is not None:
            try:
                self._last_savepoint = self._timed_save(self._last_folder)
            except Exception as error:
                self._last_savepoint = error

    def _last_answer(self) -> JobAnswer:
        """How the job ended, for those who asked it to stop."""
        if self._error is not None:
            return JobAnswer(error=self._status.error)
        if isinstance(self._last_savepoint, Exception):
            return JobAnswer(error=str(self._last_savepoint))
        return JobAnswer(None if self._last_savepoint is None else str(self._last_savepoint.path))

    def _attempts(self) -> str:
        """Attempt after attempt, until one comes to its end, the job is stopped, or the strategy gives up."""
        settings = self._settings
        count, made, again = settings.restart.begin(), 0, False
        while True:
            try:
                return self._whole_attempt(again=again)
            except StateMoves as moves:
                self._budgets.move(moves.steps)
                again = True
                if self._stopping.is_set():
                    return "stopped"
                continue
            except Exception as error:
                if self._stopping.is_set() or getattr(error, "is_final", False):
                    raise
                failed_ms = settings.restart_time.now_ms()
                delay_ms = count.delay_ms(failed_ms)
                if delay_ms is None:
                    if made:
                        error.add_note(f"given up after {_times(made)}, as {settings.restart.describe()} says")
                    raise
                made, again = made + 1, True
                self._keep(_reason(error, made, failed_ms, delay_ms))
            settings.restart_time.wait(delay_ms, self._stopping)
            if self._stopping.is_set():
                return "stopped"
            self._note(state="running")

    def _whole_attempt(self, *, again: bool) -> str:
        """An attempt, in which a connector of the user's may raise what would end this thread as if all were done."""
        try:
            return self._attempt(again=again)
        except Exception:
            raise
        except BaseException as ended:
            raise JobError.engine_failed(self.name, f"{type(ended).__name__}: {ended}") from ended

    def _keep(self, reason: RestartReason) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):  # a full disk may be the very reason, and is none to give up
                append_line(self._file, reason.to_text())
        self._note(state="restarting", restarts=(*self._status.restarts, reason)[-SHOWN_RESTARTS:])
        self._logbook.starts_again(reason)


def _newest_sizes(layout: JobLayout) -> dict[str, int]:
    """What the state of each step took after the newest epoch that is known in a job folder."""
    lines = list(read_history(layout.epochs).values())
    return {uid: sum(step.state_bytes.values()) for uid, step in lines[-1].steps.items()} if lines else {}


def _reason(error: Exception, attempt: int, failed_ms: int, delay_ms: int) -> RestartReason:
    message, step = str(error)[:_MESSAGE_CHARACTERS], getattr(error, "step", None)
    return RestartReason(attempt, failed_ms, delay_ms, type(error).__name__, message, step)


def _without_ours(error: Exception) -> Exception:
    """An error of ours tells all in its text; where the job's thread raised it is of no use to a user."""
    return error.with_traceback(None) if isinstance(error, HeadwaterError) else error


def _times(count: int) -> str:
    return "1 restart" if count == 1 else f"{count} restarts"
