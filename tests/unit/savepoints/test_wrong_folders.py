"""Folders given as savepoints that are something else: each is named for what it is, and nothing is to be removed."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.job.checkpoints.listing import Checkpoint
from headwater.job.identity import JobIdentity, shape_of
from headwater.job.layout import JobLayout

SCHEMA = "k string, n int"
REMOVES = re.compile(r"\b(remove|delete|clear|rm)\b[^;:.]*\bfolder\b|remove what is there", re.IGNORECASE)


class Count(hw.KeyedProcessFunction):
    total = hw.ValueState("int", default=0)

    def process(self, event: Any, ctx: hw.Context) -> Any:
        self.total.set(self.total.get() + event.n)
        yield event


def env_of(function: Any | None = None, source: str = "rows", **settings: Any) -> hw.Environment:
    env = hw.Environment("wrong", engine="local", **settings)
    stream = env.from_rows([("a", 1), ("b", 2)], SCHEMA, name=source)
    stream.key_by("k").process(function or Count(), SCHEMA).with_uid("count").sink(hw.connectors.memory())
    return env


def job_folder(path: Path) -> Path:
    path.mkdir()
    JobIdentity("wrong", "ab12", shape_of(env_of().plan())).write(JobLayout(path).job)
    (path / "checkpoint").mkdir()
    return path


def output_folder(path: Path) -> Path:
    env = hw.Environment("out", engine="local")
    env.from_rows([("a", 1)], SCHEMA).sink(hw.connectors.files(path))
    env.run()
    return path


def log_folder(path: Path) -> Path:
    hw.EventLog(path).create_topic("events", SCHEMA).append([("a", 1)])
    return path


FOLDERS = {
    "job": (job_folder, r"is the folder of a job, not a savepoint; .*job_dir.*hw\.checkpoints"),
    "output": (output_folder, "is the output folder of a sink, not a savepoint; give the folder that"),
    "log": (log_folder, "is not a savepoint: it has no savepoint.json, but events; give the folder that"),
}


@pytest.mark.parametrize("kind", FOLDERS)
def test_a_folder_that_is_something_else_is_named_for_what_it_is(tmp_path: Path, kind: str) -> None:
    make, said = FOLDERS[kind]
    folder = make(tmp_path / kind)
    for ask in (
        lambda: env_of().run(from_=folder),
        lambda: hw.savepoint.check(folder, env_of()),
        lambda: hw.savepoint.read(folder),
    ):
        with pytest.raises(hw.SavepointError, match=said) as told:
            ask()
        assert not REMOVES.search(str(told.value))


@pytest.mark.parametrize("kind", FOLDERS)
def test_a_savepoint_is_not_taken_into_it_and_nothing_there_is_to_go(tmp_path: Path, kind: str) -> None:
    folder = FOLDERS[kind][0](tmp_path / kind)
    before = sorted(folder.rglob("*"))
    job = env_of().start()
    job.wait()
    with pytest.raises(hw.SavepointError, match=r"is there already and not empty.*choose another path") as told:
        job.savepoint(folder)
    assert not REMOVES.search(str(told.value))
    assert sorted(folder.rglob("*")) == before


def texts() -> Iterator[tuple[str, str]]:
    """The source of every error's text, of all errors there are."""
    below = [hw.HeadwaterError]
    while below:
        error = below.pop()
        below += error.__subclasses__()
        for name, made in vars(error).items():
            if isinstance(made, classmethod):
                yield f"{error.__name__}.{name}", inspect.getsource(made.__func__)


def test_no_error_advises_to_remove_a_folder() -> None:
    found = dict(texts())
    assert len(found) > 100
    assert [name for name, source in found.items() if REMOVES.search(source)] == []


def checkpoint_of(folder: Path) -> Checkpoint:
    return Checkpoint(folder, 3, 0, 0, 1, 1, 1, published=True, ended=False, positions={}, starts={}, steps={})


def test_a_checkpoint_is_checked_as_a_savepoint_is(tmp_path: Path) -> None:
    checkpoint = checkpoint_of(job_folder(tmp_path / "job"))
    upgrade = hw.savepoint.check(checkpoint, env_of(parallelism=7))
    assert upgrade.exit_code == 0
    assert {str(fit) for fit in upgrade.fits} >= {"rows/@position: kept", "count/total: kept"}


def test_a_checkpoint_of_another_program_says_what_differs(tmp_path: Path) -> None:
    class Other(Count):
        total = hw.ValueState("bigint", default=0)

    upgrade = hw.savepoint.check(checkpoint_of(job_folder(tmp_path / "job")), env_of(Other(), source="more"))
    assert upgrade.exit_code == 1
    impossible = {fit.step: fit.how for fit in upgrade.of(hw.savepoint.Fate.IMPOSSIBLE)}
    assert impossible["rows"] == "is gone"
    assert impossible["more"] == "is new"
    assert '"int"' in impossible["count"]
    assert "take a savepoint to go on in another shape" in str(upgrade)
