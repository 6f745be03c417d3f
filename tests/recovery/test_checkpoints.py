"""Checkpoints on real files: a job that a failure stopped in its seventh epoch, listed, damaged, and taken back."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import totals_job

import headwater as hw
from headwater.epoch.manifest import Published
from headwater.job.checkpoints.history import History
from headwater.job.checkpoints.rewind import begin_rewind
from headwater.job.reading import JobReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.recovery, pytest.mark.spark, pytest.mark.timeout(600)]

FAILED = 6
"""The epoch that was planned and not committed."""
Files = dict[str, list[dict[str, Any]]]


def stop_at(step: hw.EpochStep, epoch: int) -> Callable[[hw.EpochStep, int], None]:
    def on_step(now: hw.EpochStep, at: int) -> None:
        if (now, at) == (step, epoch):
            raise ConnectionError("away")

    return on_step


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Spark notes absolute paths in a checkpoint, so every test has the same folder again."""
    return tmp_path_factory.mktemp("checkpoints")


@pytest.fixture(scope="module")
def log(place: Path) -> Path:
    totals_job.write_events(place / "log")
    return place / "log"


@pytest.fixture(scope="module")
def expected(log: Path, place: Path) -> Files:
    """What the uninterrupted run publishes."""
    totals_job.build(place / "local", log=log, engine="local").run(bounded=True)
    return totals_job.published(place / "local")


@pytest.fixture(scope="module")
def stopped(spark: SparkSession, log: Path, place: Path) -> Path:
    """A copy of a folder in which epochs 0 to 5 are committed and published, and epoch 6 is planned."""
    on_step = stop_at(hw.EpochStep.PLANNED, FAILED)
    with pytest.raises(hw.JobError, match="away"):
        totals_job.build(place / "job", log=log, spark=spark).run(bounded=True, on_step=on_step)
    shutil.copytree(place / "job", place / "copy")
    return place / "copy"


@pytest.fixture
def folder(stopped: Path, place: Path) -> Path:
    shutil.rmtree(place / "job")
    shutil.copytree(stopped, place / "job")
    return place / "job"


@pytest.fixture
def job_dir(folder: Path) -> Path:
    return folder / "job"


def offsets_in(job_dir: Path) -> dict[int, Any]:
    files = (job_dir / "checkpoint" / "offsets").glob("[0-9]*")
    return {int(path.name): json.loads(path.read_text().splitlines()[-1]) for path in files}


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


def test_committed_epochs_are_listed_with_what_is_known_of_them(job_dir: Path) -> None:
    found = hw.checkpoints(job_dir)
    assert [one.epoch for one in found] == [0, 1, 2, 3, 4, 5]
    assert (len(found), found.latest.epoch, found.damaged) == (6, 5, {})
    one = found[4]
    assert (one.job_dir, one.published, one.ended) == (job_dir, True, False)
    assert one.starts == {"source": {"0": 300, "1": 300}}
    assert one.positions == {"source": {"0": 375, "1": 375}}
    assert {uid: facts["rows_in"] for uid, facts in one.steps.items()} == dict.fromkeys(one.steps, 150)
    assert set(one.steps) == {"source", "totals", "where", "per_initial"}
    assert one.steps["totals"]["state"] == {"@timers.event": 60, "@timers.processing": 0, "n": 60, "total": 60}
    assert one.steps["totals"]["changelog_bytes"]["n"] > 60
    assert one.watermarks["totals"] == 1_700_000_331_999
    assert one.stored_bytes is not None
    assert one.stored_bytes > one.size_bytes > 1000
    assert one.duration_ms is not None
    assert found[3].time_ms < one.time_ms


def test_checkpoints_describe_themselves(job_dir: Path) -> None:
    found = hw.checkpoints(job_dir)
    title, head, *lines = str(found).splitlines()
    assert title == f"checkpoints in {job_dir}"
    assert head.split() == ["epoch", "computed", "(UTC)", "took", "added", "stored", "rows", "in", "published"]
    assert [(line.split()[0], *line.split()[-2:]) for line in lines] == [(str(n), "150", "yes") for n in range(6)]
    text = str(found[4])
    assert "source source: 0: 300 to 375, 1: 300 to 375" in text
    assert "step totals: 150 rows in, 150 out, watermark 2023-11-14 22:18:51.999" in text
    assert "  n: 60 entries, " in text


def test_an_epoch_that_is_not_retained_is_refused_with_those_that_are(job_dir: Path) -> None:
    with pytest.raises(hw.JobError, match=r"has no checkpoint of epoch 6; choose one of 0-5"):
        hw.checkpoints(job_dir)[FAILED]
    with pytest.raises(hw.JobError, match=r"is not the folder of a job"):
        hw.checkpoints(job_dir.parent)


def test_a_history_that_a_crash_has_torn_is_read_as_far_as_it_goes(job_dir: Path) -> None:
    history = job_dir / "epochs.jsonl"
    lines = history.read_text().splitlines(keepends=True)
    history.write_text("".join([*lines[:4], lines[4][:40]]))
    found = hw.checkpoints(job_dir)
    assert [one.duration_ms is None for one in found] == [False] * 4 + [True] * 2
    assert (found[4].steps, found[4].positions) == ({}, {"source": {"0": 375, "1": 375}})
    assert str(found).splitlines()[-1].split()[-3:] == ["?", "?", "yes"]


def test_the_history_forgets_what_is_no_longer_retained_and_counts_the_last_line(job_dir: Path) -> None:
    for number in range(3):
        (job_dir / "checkpoint" / "offsets" / str(number)).unlink()
    with (job_dir / "epochs.jsonl").open("a") as out:
        out.write('{"epoch": 5, "tor')
    history = History(job_dir / "epochs.jsonl", JobReader(job_dir).stored())
    history.add(5, [], 7)
    history.close()
    lines = [json.loads(line) for line in (job_dir / "epochs.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [3, 4, 5, 5]
    found = hw.checkpoints(job_dir)
    assert [one.epoch for one in found] == [4, 5], "Spark needs the offsets before a checkpoint too"
    assert found[5].duration_ms == 7


@pytest.mark.parametrize(
    ("name", "harm", "epochs", "problem"),
    [
        ("offsets/5", truncate, [5], "offsets/5"),
        ("offsets/4", flip, [4, 5], "offsets/4"),
        ("commits/5", truncate, [5], "commits/5"),
        ("commits/3", Path.unlink, [], None),
        ("state/0/1/6.changelog", Path.unlink, [5], "6.changelog: it is missing"),
        ("state/1/0/4.changelog", Path.unlink, [3, 4, 5], "4.changelog: it is missing"),
        ("state/0/0/1.zip", truncate, [0, 1, 2, 3, 4, 5], "1.zip: it is not a snapshot"),
    ],
)
def test_what_is_missing_or_unreadable_is_listed_as_damaged(
    job_dir: Path, name: str, harm: Callable[[Path], None], epochs: list[int], problem: str | None
) -> None:
    harm(job_dir / "checkpoint" / name)
    found = hw.checkpoints(job_dir)
    assert list(found.damaged) == epochs
    assert all(problem is not None and problem in why for why in found.damaged.values())
    for epoch in epochs:
        with pytest.raises(hw.JobError, match=f"checkpoint of epoch {epoch} is damaged"):
            found[epoch]
    assert str(found).count("damaged: ") == len(epochs)


@pytest.mark.parametrize(
    ("name", "harm", "problem"),
    [
        ("state/0/1/6.changelog", truncate, "its checksum does not fit at byte|was longer"),
        ("state/1/1/6.changelog", flip, "its checksum does not fit at byte"),
    ],
)
def test_a_rewind_to_what_is_damaged_changes_nothing(
    job_dir: Path, name: str, harm: Callable[[Path], None], problem: str
) -> None:
    harm(job_dir / "checkpoint" / name)
    before = tree(job_dir)
    with pytest.raises(hw.JobError, match=problem) as caught:
        hw.checkpoints(job_dir).rewind(5)
    assert f"take the job back with hw.checkpoints({str(job_dir)!r}).rewind(4)" in str(caught.value)
    with pytest.raises(hw.JobError, match="has no checkpoint of epoch 9; choose one of 0-5"):
        hw.checkpoints(job_dir).rewind(9)
    after = tree(job_dir)
    assert {name: after[name] for name in after if name != "lock"} == {n: before[n] for n in before if n != "lock"}


def test_a_job_that_runs_elsewhere_is_not_taken_back(job_dir: Path) -> None:
    code = "import sys; from headwater.job.folder import JobFolder; from pathlib import Path\n"
    code += "held = JobFolder(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(job_dir)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(hw.JobError, match=rf"{job_dir} is in use by another process \({other.pid} on .*stop that"):
            hw.checkpoints(job_dir).rewind(3)
        other.communicate()
    assert hw.checkpoints(job_dir).rewind(3).epoch == 3


@pytest.mark.parametrize("removals", [1, 2, 9, 30])
def test_a_rewind_that_is_killed_is_finished_by_the_next(job_dir: Path, place: Path, removals: int) -> None:
    shutil.copytree(job_dir, place / "whole", dirs_exist_ok=True)
    hw.checkpoints(job_dir).rewind(2)
    expected = tree(job_dir)
    shutil.rmtree(job_dir)
    (place / "whole").rename(job_dir)
    code = f"""
import os, signal, sys, headwater as hw
left = {removals}
def die(event, arguments):
    global left
    if event == "os.remove":
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(die)
hw.checkpoints(sys.argv[1]).rewind(2)
"""
    done = subprocess.run([sys.executable, "-c", code, str(job_dir)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert [one.epoch for one in hw.checkpoints(job_dir)] == [0, 1, 2], "what is about to go is not shown"
    hw.checkpoints(job_dir).rewind(2)
    found = tree(job_dir)
    assert {name: found[name] for name in found if name != "lock"} == {n: expected[n] for n in expected if n != "lock"}


def test_an_offset_that_is_lost_is_taken_from_the_history(job_dir: Path) -> None:
    planned = offsets_in(job_dir)
    truncate(job_dir / "checkpoint" / "offsets" / "5")
    (job_dir / "checkpoint" / "offsets" / "6").unlink()
    hw.checkpoints(job_dir).rewind(3)
    replay = json.loads((job_dir / "outbox" / "replay.json").read_text())
    assert [one["offset"] for one in replay["epochs"]] == [planned[4], planned[5]]


def test_epochs_that_sinks_have_are_not_planned_anew(job_dir: Path) -> None:
    truncate(job_dir / "checkpoint" / "offsets" / "5")
    (job_dir / "epochs.jsonl").unlink()
    with pytest.raises(hw.JobError, match=r"epoch 5 cannot be computed again as it was: .*offsets/5 cannot be read"):
        hw.checkpoints(job_dir).rewind(3)
    assert not (job_dir / "rewind.json").exists()


def test_unaligned_epochs_that_sinks_have_are_not_cut_elsewhere(job_dir: Path) -> None:
    """As if epochs 4 and 5 had been unaligned."""
    for batch in (4, 5):
        path = job_dir / "checkpoint" / "offsets" / str(batch)
        *head, offset = path.read_text().splitlines()
        path.write_text("\n".join([*head, json.dumps({**json.loads(offset), "unaligned_ms": 1000})]))
        path.with_name(f".{batch}.crc").unlink()
    with pytest.raises(
        hw.JobError, match=r"cannot go back to epoch 2: epoch 5 is unaligned .* choose epoch 4 or later"
    ):
        hw.checkpoints(job_dir).rewind(2)
    assert hw.checkpoints(job_dir).rewind(4).epoch == 4


def test_a_checkpoint_that_is_older_than_what_sinks_have_is_refused(
    folder: Path, job_dir: Path, log: Path, spark: SparkSession
) -> None:
    JobReader(job_dir).stored().cut(2)
    with pytest.raises(hw.JobError, match=r"epoch 3 cannot be computed again as it was: .*offsets/3 .* up to 5"):
        totals_job.build(folder, log=log, spark=spark).run(bounded=True)


def test_a_job_folder_from_before_records_had_versions_is_gone_on_from(
    folder: Path, job_dir: Path, log: Path, expected: Files, spark: SparkSession
) -> None:
    """With the epoch that was planned then, and a way back over epochs of that time, when there were no checksums either."""
    version = re.compile(r'"crc32": ?\d+, ?|"format": ?1, ?|, ?"format": ?1')
    shutil.rmtree(job_dir / "control")
    (job_dir / "status.json").unlink()
    logged = list((job_dir / "checkpoint" / "offsets").glob("[0-9]*"))
    for path in [job_dir / "epochs.jsonl", job_dir / "outbox" / "published.json", *logged]:
        text, count = version.subn("", path.read_text())
        assert count, path
        path.write_text(text)
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    hw.checkpoints(job_dir).rewind(4)
    totals_job.build(folder, log=log, spark=spark).run(bounded=True)
    assert totals_job.published(folder) == expected


def test_taken_back_job_computes_again_from_the_same_offsets_and_publishes_nothing_twice(
    folder: Path, job_dir: Path, log: Path, expected: Files, spark: SparkSession
) -> None:
    planned = offsets_in(job_dir)
    seen = {path: path.stat().st_mtime_ns for path in (folder / "totals").glob("*.parquet")}
    listed: list[int] = []

    def on_step(step: hw.EpochStep, epoch: int) -> None:
        if step is hw.EpochStep.COMMITTED:
            listed.append(hw.checkpoints(job_dir).latest.epoch - epoch)

    assert hw.checkpoints(job_dir).rewind(2).epoch == 2
    env = totals_job.build(folder, log=log, spark=spark, checkpoints_retained=3)
    job = env.run(bounded=True, on_step=on_step)
    assert totals_job.published(folder) == expected
    assert {path: path.stat().st_mtime_ns for path in seen} == seen
    lines = (folder / "totals" / "_headwater" / "manifest.jsonl").read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in lines] == list(range(8))
    assert not list((folder / "totals" / "_headwater" / "staging").iterdir())
    last = offsets_in(job_dir)
    assert {epoch: at for epoch, at in last.items() if epoch in planned} == {
        e: planned[e] for e in last if e in planned
    }
    assert FAILED in last
    assert listed
    assert min(listed) >= 0, "a job can be looked at while it runs"
    retained = [one.epoch for one in job.checkpoints()]
    assert retained == list(range(retained[0], 8))
    assert retained[0] > 1, "those before them are gone"

    job = JobReader(job_dir)
    begin_rewind(job, job.stored(), 6, {})  # as if it was killed then
    assert hw.checkpoints(job_dir).latest.epoch == 6
    again = totals_job.build(folder, log=log, spark=spark).run(bounded=True)
    assert (again.status().state, totals_job.published(folder)) == ("finished", expected)
    assert offsets_in(job_dir)[7] == last[7], "a start finishes what was begun, and a job that had ended ends again"


def test_the_way_out_of_damage_is_an_earlier_checkpoint(
    folder: Path, job_dir: Path, log: Path, expected: Files, spark: SparkSession
) -> None:
    def start() -> None:
        totals_job.build(folder, log=log, spark=spark).run(bounded=True)

    flip(job_dir / "checkpoint" / "state" / "0" / "0" / "5.changelog")
    with pytest.raises(hw.JobError, match=r"5\.changelog cannot be used: its checksum does not fit") as caught:
        start()
    assert "checkpoint of epoch 5 is damaged" in str(caught.value)
    assert f"hw.checkpoints({str(job_dir)!r}).rewind(3)" in str(caught.value)
    for name in ("commits/5", "offsets/6"):
        truncate(job_dir / "checkpoint" / name)
        with pytest.raises(hw.JobError, match=rf"{name} cannot be used: .*rewind\(3\)"):
            start()
    hw.checkpoints(job_dir).rewind(3)
    start()
    assert totals_job.published(folder) == expected


def test_rows_that_were_committed_and_not_published_are_published_as_they_are(
    folder: Path, job_dir: Path, log: Path, expected: Files, spark: SparkSession
) -> None:
    env = totals_job.build(folder, log=log, spark=spark)
    with pytest.raises(hw.JobError, match="away"):
        env.run(bounded=True, on_step=stop_at(hw.EpochStep.COMMITTED, FAILED))
    found = hw.checkpoints(job_dir)
    assert [one.published for one in found][-2:] == [True, False]
    hw.checkpoints(job_dir).rewind(4)
    replay = json.loads((job_dir / "outbox" / "replay.json").read_text())["epochs"]
    known = [(one["offset"]["epoch"] - 1, one["committed"]) for one in replay]
    assert known[:2] == [(5, True), (6, True)]
    assert known[2:] in ([], [(7, False)])  # Spark may have planned the next epoch before it was told
    assert list((folder / "totals" / "_headwater" / "staging").glob("0000000006-*"))
    totals_job.build(folder, log=log, spark=spark).run(bounded=True)
    assert totals_job.published(folder) == expected


def test_rows_that_are_lost_before_they_are_published_are_made_again(folder: Path, job_dir: Path) -> None:
    """From the first epoch on whose rows are gone, because rows are published in order."""
    published = job_dir / "outbox" / "published.json"
    replace(Published.read(published), epoch=3).write(published)
    for epoch in (4, 5):
        kept = folder / f"rows-{epoch}"
        kept.touch(exist_ok=True)
        manifest = {"epoch": epoch, "end": False, "positions": {}}
        file = {"sink": "totals-out", "path": str(kept), "name": "rows", "rows": 1, "size_bytes": 1}
        (job_dir / "outbox" / f"manifest-{epoch:010d}.json").write_text(json.dumps({**manifest, "files": [file]}))
    (folder / "rows-4").unlink()
    hw.checkpoints(job_dir).rewind(2)
    replay = json.loads((job_dir / "outbox" / "replay.json").read_text())["epochs"]
    assert [one["committed"] for one in replay] == [True, False, False, False]


def test_new_job_goes_on_from_any_checkpoint(
    job_dir: Path, log: Path, expected: Files, spark: SparkSession, tmp_path: Path
) -> None:
    """With other subtasks, and into outputs of its own: it writes what the first job wrote after that epoch."""
    env = totals_job.build(tmp_path, log=log, spark=spark, parallelism=3)
    assert hw.savepoint.check(hw.checkpoints(job_dir)[3], env).exit_code == 0
    job = env.run(from_=hw.checkpoints(job_dir)[3], bounded=True)
    assert (job.status().state, job.status().epoch) == ("finished", totals_job.EPOCHS - 1)
    assert rows_of(totals_job.published(tmp_path)) == rows_of(expected, after=3)
    again = totals_job.build(tmp_path, log=log, spark=spark, parallelism=3)
    assert again.run(from_=hw.checkpoints(job_dir)[3], bounded=True).status().state == "finished"


def test_checkpoint_is_for_the_program_that_wrote_it(
    job_dir: Path, log: Path, spark: SparkSession, tmp_path: Path
) -> None:
    class Others(totals_job.Totals):
        more = hw.ValueState("long")

    env = totals_job.build(tmp_path, log=log, totals=Others(), spark=spark)
    assert hw.savepoint.check(hw.checkpoints(job_dir)[3], env).exit_code == 1
    with pytest.raises(hw.JobError, match="was written by a program of another shape: step 'totals' was") as caught:
        env.run(from_=hw.checkpoints(job_dir)[3], bounded=True)
    assert "take a savepoint with it and start the new one from that" in str(caught.value)
    assert not (tmp_path / "job" / "job.json").exists()


def rows_of(files: Files, after: int = -1) -> dict[str, list[str]]:
    """The rows of each output from later epochs, in one order."""
    found: dict[str, list[str]] = {}
    for name, rows in files.items():
        sink, epoch = name.rsplit("-", 3)[:2]
        if int(epoch) > after:
            found.setdefault(sink, []).extend(json.dumps(row, default=str) for row in rows)
    return {sink: sorted(rows) for sink, rows in found.items()}
