from __future__ import annotations

import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.job.folder import JobFolder
from headwater.plan.plan import JobPlan, plan_job


class Count(hw.KeyedProcessFunction):
    seen = hw.ValueState("bigint")


class Other(hw.KeyedProcessFunction):
    seen = hw.ListState("bigint")


def plan_of(
    function: Any = None, *, parallelism: int = 2, groups: int = 128, uid: str = "count", key: str = "k"
) -> JobPlan:
    env = hw.Environment("folder", engine="local")
    stream = env.from_rows([], "k string, n long").key_by(key).process(function or Count(), "k string").with_uid(uid)
    stream.sink(hw.connectors.memory())
    return plan_job(env.graph, parallelism, groups)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[JobFolder]:
    folder = JobFolder(tmp_path / "job")
    folder.claim(plan_of())
    yield folder
    folder.close()


def test_one_process_at_a_time_has_the_folder(folder: JobFolder) -> None:
    with pytest.raises(hw.JobError, match="is in use by another job of this process"):
        JobFolder(folder.path)
    folder.close()
    JobFolder(folder.path).close()


def test_a_new_folder_is_its_owners_alone(folder: JobFolder) -> None:
    made = (folder.path, folder.layout.outbox.path)
    assert [stat.S_IMODE(path.stat().st_mode) for path in made] == [0o700, 0o700]


def test_the_same_program_comes_back_as_the_same_job(folder: JobFolder) -> None:
    assert not folder.resumed
    folder.close()
    again = JobFolder(folder.path)
    again.claim(plan_of())
    assert again.resumed
    assert again.job_id == folder.job_id
    again.close()


@pytest.mark.parametrize(
    ("other", "fact"),
    [
        ({"parallelism": 3}, "parallelism was 2, is 3"),
        ({"groups": 64}, "key groups was 128, is 64"),
        ({"uid": "renamed"}, "step 'count' is gone; step 'renamed' is new"),
        ({"function": Other()}, "step 'count' was .*value.*, is .*list"),
        ({"key": "n"}, "step 'count' was .*string.*, is .*bigint"),
    ],
)
def test_a_program_of_another_shape_is_refused(folder: JobFolder, other: dict[str, Any], fact: str) -> None:
    folder.close()
    again = JobFolder(folder.path)
    with pytest.raises(hw.JobError, match=f"was written by a program of another shape: {fact}"):
        again.claim(plan_of(**other))
    again.close()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"id": "x"}'])
def test_a_damaged_note_is_told(folder: JobFolder, content: str) -> None:
    (folder.path / "job.json").write_text(content)
    with pytest.raises(hw.JobError, match=r"job\.json cannot be read"):
        folder.claim(plan_of())


def test_a_second_process_is_refused_and_told_which_one_has_the_folder(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from headwater.job.folder import JobFolder\n"
        "held = JobFolder(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        for _ in range(2):  # the first refusal does not hide the owner from the second
            with pytest.raises(hw.JobError) as caught:
                JobFolder(tmp_path)
            assert str(caught.value) == (
                f"job folder {tmp_path} is in use by another process ({other.pid} on {socket.gethostname()}); "
                f"stop that job first or use another job_dir"
            )
        other.kill()
        other.communicate()
    JobFolder(tmp_path).close()
