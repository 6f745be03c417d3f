"""Jobs seen and asked from outside. The job is one without an engine: what it is asked, and answers, is all that counts."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.control import asking
from headwater.epoch.manifest import Published
from headwater.epoch.protocol import Claim
from headwater.epoch.reports import TaskReport
from headwater.job.checkpoints.listing import Checkpoints
from headwater.job.engine import Settings
from headwater.job.folder import JobFolder
from headwater.job.identity import JobIdentity
from headwater.job.layout import JobLayout
from headwater.job.lock import Owner
from headwater.job.requests import Action, JobAnswer, JobRequest
from headwater.job.splits import SplitStatus
from headwater.job.state_view import StateView
from headwater.job.supervised import SupervisedJob
from headwater.plan.plan import plan_job
from headwater.savepoints.errors import SavepointError
from headwater.savepoints.files import Savepoint
from headwater.savepoints.origin import Origin
from headwater.task.counters import StepCounters

SHAPE = {"parallelism": 1, "key groups": 128, "sources": ["rows"], "steps": {}}


class Waiting(SupervisedJob):
    """Runs until it is stopped, or is told how to end."""

    engine = "local"

    def __init__(self, job_dir: Path) -> None:
        self.folder = JobFolder(job_dir)
        JobIdentity("waiting", "id", SHAPE).write(self.folder.layout.job)
        settings = Settings(
            job_dir=job_dir, checkpoint_interval_ms=0, checkpoints_retained=1, max_rows_per_epoch=1, bounded=True
        )
        env = hw.Environment("waiting", engine="local")
        env.from_rows([(1,)], "n long", name="rows").sink(hw.connectors.memory())
        super().__init__(plan_job(env.graph, 1, 128), settings, self.folder.layout)
        self.saves: Callable[[Path], None] = lambda path: path.mkdir(parents=True)
        self.fails: Exception | None = None

    def compute(self, epoch: int, **counters: int) -> None:
        told = {"step": StepCounters(3, 2, 70, counters=counters), "rows": StepCounters(9, 9, 80)}
        report = TaskReport((), told, positions={"rows": {"0": 9}}, idle=True)
        with self._lock:
            self._status = self._status.after(epoch, [report], 5_000)

    def start(self) -> None:
        self._protocol.begin(self.folder.layout.sources, None, is_new=True)
        self._protocol.recover(again=False)
        super().start()

    def claim(self, origin: Origin | None) -> Claim:
        return Claim("id", origin, resumed=False, outbox=self.folder.layout.outbox.path)

    def is_committed(self, epoch: int) -> bool:
        raise NotImplementedError

    def _attempt(self, *, again: bool) -> str:
        self._stopping.wait()
        if self.fails is not None:
            raise self.fails
        return "stopped"

    def state(self, uid: str, name: str, *, epoch: int | None = None) -> StateView:
        if uid != "step":
            raise SavepointError.no_state("job 'waiting'", uid, name, ["step/total"])
        return StateView(uid, name, 7 if epoch is None else epoch, pa.table({"key": ["ann"], "value": [4]}))

    def checkpoints(self) -> Checkpoints:
        raise NotImplementedError

    def _save(self, path: Path) -> Savepoint:
        self.saves(path)
        saved: Any = SimpleNamespace(path=path, description=SimpleNamespace(epoch=0))
        return saved  # type: ignore[no-any-return]

    def release(self) -> None:
        self.folder.close()


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Waiting]:
    job = Waiting(tmp_path / "job")
    job.start()
    yield job
    job.stop()


def seen(job_dir: Path, wanted: Callable[[hw.control.JobView], bool]) -> hw.control.JobView:
    """The view of a job when it is as wanted."""
    waiting = threading.Event()
    for _ in range(600):
        view = hw.control.job(job_dir)
        if wanted(view):
            return view
        waiting.wait(0.05)
    raise AssertionError(view)


def test_a_running_job_is_seen_as_its_driver_knows_it(job: Waiting, tmp_path: Path) -> None:
    job.compute(4, retries=2)
    Published(3, positions={"rows": {"0": 7}}).write(job.folder.layout.outbox.published)
    view = seen(tmp_path / "job", lambda view: view.status.epoch == 4)
    assert (view.name, view.job_id, view.state, view.owner) == ("waiting", "id", "running", Owner.this_process())
    assert (view.published, view.positions, view.status.positions) == (3, {"rows": {"0": 7}}, {"rows": {"0": 9}})
    assert view.splits == {"rows": {"0": SplitStatus(9, 80, is_idle=True, last_rows_ms=5_000, moved_ms=5_000)}}
    assert (view.steps["step"]["rows_in"], view.steps["step"]["retries"], view.steps["step"].watermark_ms) == (3, 2, 70)
    assert (view.planned, view.committed, view.restarts, view.epochs()) == (-1, -1, (), {})


def test_a_job_that_has_ended_is_seen_as_it_ended(tmp_path: Path) -> None:
    job = Waiting(tmp_path / "job")
    job.fails = hw.JobError("the cause")
    job.start()
    with pytest.raises(hw.JobError, match=r"asked for a stop, which failed: the cause"):
        hw.control.request_stop(tmp_path / "job")
    view = hw.control.job(tmp_path / "job")
    assert (view.state, view.is_running, view.status.error) == ("failed", False, "the cause")


def test_jobs_are_found_below_a_folder_and_not_inside_each_other(tmp_path: Path) -> None:
    for name in ("b", "a/deep", "a/deep/checkpoint/c"):
        (tmp_path / name).mkdir(parents=True)
        JobIdentity(name, "id", SHAPE).write(JobLayout(tmp_path / name).job)
    found = hw.control.jobs(tmp_path)
    assert [(view.name, view.state, view.is_running) for view in found] == [
        ("a/deep", "unknown", False),
        ("b", "unknown", False),
    ]
    assert hw.control.jobs(tmp_path / "none") == []
    with pytest.raises(hw.JobError, match=r"is not the folder of a job.*that has run on Spark"):
        hw.control.job(tmp_path)


def test_a_savepoint_is_taken_on_request_and_the_job_goes_on(job: Waiting, tmp_path: Path) -> None:
    assert hw.control.request_savepoint(tmp_path / "job", tmp_path / "saved") == tmp_path / "saved"
    assert (tmp_path / "saved").is_dir()
    assert job.status().state == "running"
    control = job.folder.layout.control
    assert [*control.requests.iterdir(), *control.answers.iterdir()] == [], "nothing is left behind"


def test_a_state_is_looked_at_on_request(job: Waiting, tmp_path: Path) -> None:
    view = hw.control.request_state(tmp_path / "job", "step", "total")
    assert (view.step, view.name, view.epoch, view.get("ann"), view.get("bob")) == ("step", "total", 7, 4, None)
    assert hw.control.request_state(tmp_path / "job", "step", "total", epoch=3, timeout="1 min").epoch == 3
    with pytest.raises(hw.JobError, match=r"asked for a state, which failed: .*step/total"):
        hw.control.request_state(tmp_path / "job", "nothing", "total")
    control = job.folder.layout.control
    assert [*control.requests.iterdir(), *control.answers.iterdir()] == [], "nothing is left behind"


def test_a_savepoint_that_fails_is_told_with_what_the_job_said(job: Waiting, tmp_path: Path) -> None:
    (tmp_path / "taken" / "file").mkdir(parents=True)
    with pytest.raises(hw.JobError, match=r"asked for a savepoint, which failed: .*taken is there already"):
        hw.control.request_savepoint(tmp_path / "job", tmp_path / "taken")

    def fail(path: Path) -> None:
        raise RuntimeError("no way")

    job.saves = fail
    with pytest.raises(hw.JobError, match=r"which failed: RuntimeError\('no way'\)"):
        hw.control.request_savepoint(tmp_path / "job", tmp_path / "saved")
    assert job.status().state == "running"


def test_when_a_stop_is_answered_the_folder_is_free(tmp_path: Path) -> None:
    job = Waiting(tmp_path / "job")
    job.start()
    saved = tmp_path / "last"
    assert hw.control.request_stop(tmp_path / "job", savepoint=saved) == saved
    again = Waiting(tmp_path / "job")
    again.start()
    assert hw.control.request_stop(tmp_path / "job") is None
    assert hw.control.job(tmp_path / "job").state == "stopped"
    assert job.wait()
    assert again.wait()


def test_a_stop_whose_savepoint_fails_is_told(tmp_path: Path) -> None:
    job = Waiting(tmp_path / "job")

    def fail(path: Path) -> None:
        raise SavepointError.failed(path, "no room")

    job.saves = fail
    job.start()
    with pytest.raises(hw.JobError, match=r"asked for a stop, which failed: .*no room"):
        hw.control.request_stop(tmp_path / "job", savepoint=tmp_path / "last")
    assert job.wait(), "the job itself has ended well"


def test_a_job_that_does_not_run_is_not_asked(job: Waiting, tmp_path: Path) -> None:
    job.stop()
    with pytest.raises(hw.JobError, match=r"job 'waiting' in .* can be asked while it runs, and no process runs it"):
        hw.control.request_stop(tmp_path / "job")
    assert job.folder.layout.control.waiting() == []


def test_requests_to_a_job_that_is_gone_are_removed_when_it_starts(tmp_path: Path) -> None:
    control = JobLayout(tmp_path / "job").control
    control.requests.mkdir(parents=True)
    JobRequest(Action.STOP).write(control.request("00000000000000000001-a"))
    job = Waiting(tmp_path / "job")
    assert control.waiting() == []
    assert hw.control.job(tmp_path / "job").state == "starting"
    job.start()
    assert hw.control.request_savepoint(tmp_path / "job", tmp_path / "saved") == tmp_path / "saved", (
        "it was not stopped"
    )
    job.stop()


@pytest.mark.parametrize(
    ("content", "why"),
    [('{"format": 9, "action": "stop"}', "use the newer Headwater"), ('{"action": "dance"}', "'dance' is not a valid")],
)
def test_a_request_that_cannot_be_read_is_answered(job: Waiting, content: str, why: str) -> None:
    control, asked = job.folder.layout.control, "00000000000000000001-a"
    control.request(asked).write_text(content)
    waiting = threading.Event()
    while (answer := JobAnswer.read_if_there(control.answer(asked))) is None:
        waiting.wait(0.05)
    assert why in str(answer.error)
    assert control.waiting() == []


def hold(job_dir: Path) -> subprocess.Popen[str]:
    """A process that has the folder and answers nothing."""
    code = (
        "import sys; from pathlib import Path; from headwater.job.folder import JobFolder\n"
        "held = JobFolder(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(job_dir)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_request_that_is_not_taken_up_in_time_is_withdrawn(job: Waiting, tmp_path: Path) -> None:
    job.stop()
    with hold(tmp_path / "job") as other:
        with pytest.raises(hw.JobError, match="asked for a stop and has not answered: 50 ms have passed"):
            hw.control.request_stop(tmp_path / "job", timeout="50 ms")
        assert job.folder.layout.control.waiting() == []
        other.kill()
        other.communicate()


def test_a_job_that_dies_is_told_to_who_asked_it(job: Waiting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "_GRACE_S", 0.1)
    job.stop()
    with hold(tmp_path / "job") as other:
        threading.Timer(0.3, other.kill).start()
        with pytest.raises(hw.JobError, match=rf"has not answered: its process \({other.pid} on .*\) has died"):
            hw.control.request_savepoint(tmp_path / "job", tmp_path / "saved")
        other.communicate()
    (tmp_path / "job" / "status.json").write_text('{"format": 1, "state": "running", "steps": {}, "restarts": []}')
    assert hw.control.job(tmp_path / "job").state == "dead"
