"""Commands that need no job on Spark, as a user types them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.parts.halves import run_epochs
from tests.web.job_folders import HOSTILE, make_job_folder
from typer.testing import CliRunner, Result

import headwater as hw
from headwater.cli.app import app, main
from headwater.late_rows import SHOWN

JOB = """
import headwater as hw

class Total(hw.KeyedProcessFunction):
    {name} = hw.ValueState({type!r})

    def process(self, event, ctx):
        self.{name}.set((self.{name}.get() or 0) + event.n)
        yield event

def build(env):
    rows = env.from_rows([("a", 1), ("b", 2), ("a", 3)], "k string, n int")
    rows.key_by("k").process(Total(), "k string, n int").with_uid("totals").sink(hw.connectors.console())
"""
MADE = """
import headwater as hw

env = hw.Environment("made", parallelism=3)
env.from_rows([(1,)], "n int").key_by("n").agg(rows=hw.count()).sink(hw.connectors.console())
if __name__ == "__main__":
    env.run()
"""


def run(*arguments: object, text: str | None = None) -> Result:
    return CliRunner().invoke(app, [str(one) for one in arguments], input=text, catch_exceptions=False)


def said(*arguments: object, text: str | None = None) -> str:
    done = run(*arguments, text=text)
    assert done.exit_code == 0, done.output
    return done.stdout


def told(*arguments: object, text: str | None = None) -> Any:
    return json.loads(said(*arguments, "--json", text=text))


def program(folder: Path, text: str) -> Path:
    file = folder / "totals.py"
    file.write_text(text)
    return file


@pytest.fixture
def job(tmp_path: Path) -> Path:
    return program(tmp_path, JOB.format(name="total", type="long"))


@pytest.fixture
def savepoint(tmp_path: Path) -> Path:
    scope: dict[str, Any] = {}
    exec(JOB.format(name="total", type="long"), scope)
    env = hw.Environment("totals", engine="local", max_rows_per_epoch=3)
    scope["build"](env)
    return run_epochs(env, 1).savepoint(tmp_path / "saved")  # type: ignore[no-any-return]


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Types a command that must be refused; gives what it says."""

    def refused(*arguments: object) -> str:
        monkeypatch.setattr("sys.argv", ["headwater", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        shown = capsys.readouterr()
        assert (ended.value.code, shown.out) == (1, "")
        return shown.err

    return refused


def test_a_job_runs_from_its_file(job: Path) -> None:
    lines = said("run", job, "--engine", "local", "--json").splitlines()
    assert 'sink 0 {"k": "a", "n": 1}' in lines
    found = json.loads("\n".join(lines[lines.index("{") :]))
    assert (found["state"], found["steps"]["totals"]["rows_in"]) == ("finished", 3)


def test_options_take_the_place_of_what_the_file_says(tmp_path: Path) -> None:
    file = program(tmp_path, MADE)
    assert "parallelism 3" in said("explain", file)
    assert "parallelism 5" in said("explain", file, "--parallelism", 5)
    assert 'sink 0 {"n": 1, "rows": 1}' in said("run", file, "--engine", "local")


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("import headwater as hw", "it has neither"),
        (f"{MADE}\nother = hw.Environment('other')", "it makes 2 environments"),
        ("def build(): return 1", "its build() gives a int"),
        (MADE.replace('if __name__ == "__main__":\n    ', ""), "must not run its job while it is loaded"),
    ],
)
def test_a_file_that_is_no_job_is_refused(text: str, fact: str, tmp_path: Path, refused: Any) -> None:
    assert fact in refused("run", program(tmp_path, text))
    assert "there is no file" in refused("explain", tmp_path / "nowhere.py")


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        ("env.from_rows([(1,)], 'n int').key_by('m')", "there is no field 'm'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("env.from_rows(", "SyntaxError: '(' was never closed"),
    ],
)
def test_a_mistake_in_the_file_is_shown_with_its_line(line: str, fact: str, tmp_path: Path, refused: Any) -> None:
    text = refused("run", program(tmp_path, f"import headwater as hw\ndef build(env):\n    {line}\n"))
    assert 'totals.py", line 3' in text
    assert fact in text
    assert len(text.splitlines()) <= 9


def test_explain_tells_the_plan_the_state_and_the_guarantees(job: Path) -> None:
    found = told("explain", job, "--plan", "--state", "--guarantees")
    assert found["job"] == "totals"
    assert "level 1" in found["plan"]
    assert found["state"]["steps"]["totals"]["place"] == "memory"
    assert "at-least-once" in found["guarantees"]
    assert said("explain", job, "--state").startswith("job totals\ntotals: ")
    assert "in a sample of 3 rows" in said("explain", job, "--sample", "3")


def test_a_savepoint_is_shown_listed_and_looked_into(savepoint: Path, tmp_path: Path, refused: Any) -> None:
    assert "job totals, epoch 0" in said("savepoint", "show", savepoint)
    assert told("savepoint", "show", savepoint)["states"][0]["step"] == "totals"
    (found,) = told("savepoint", "list", tmp_path)
    assert (found["savepoint"], found["job"], found["epoch"]) == (str(savepoint), "totals", 0)
    assert "no savepoint is in" in said("savepoint", "list", tmp_path / "saved" / "totals")
    assert "is not a savepoint" in refused("savepoint", "show", tmp_path)
    assert [one["entries"] for one in told("state", "list", savepoint) if one["state"] == "total"] == [2]
    assert said("state", "show", savepoint, "totals", "total", "--key", "a").strip() == "4"
    assert "nothing is kept" in said("state", "show", savepoint, "totals", "total", "--key", "c")
    query = "SELECT sum(value) AS total FROM state"
    assert told("state", "show", savepoint, "totals", "total", "--sql", query)["rows"] == [{"total": 6}]


@pytest.mark.parametrize(
    "query",
    ["SELECT * FROM read_text('/etc/hostname')", "COPY state TO 'x'", "SET threads=2", "SELECT wrong FROM state"],
)
def test_a_query_of_state_reaches_nothing_else(query: str, savepoint: Path, refused: Any) -> None:
    assert "over the table state failed" in refused("state", "show", savepoint, "totals", "total", "--sql", query)


def test_an_upgrade_is_checked_and_told_by_the_exit_code(savepoint: Path, tmp_path: Path) -> None:
    def check(name: str, type: str, *more: str) -> tuple[int, str]:  # noqa: A002
        done = run("savepoint", "check", savepoint, program(tmp_path, JOB.format(name=name, type=type)), *more)
        return done.exit_code, done.stdout

    code, text = check("total", "long")
    assert (code, "the program can go on from the savepoint" in text) == (0, True)
    assert check("total", "string")[0] == 1
    assert check("sum", "long")[0] == 3
    assert check("sum", "long", "--renamed", "totals/total=sum")[0] == 0


def test_topics_are_made_filled_read_and_deleted(tmp_path: Path, refused: Any) -> None:
    log = tmp_path / "log"
    said("log", "create", log, "orders", "user string, amount double, ts timestamp", "--partitions", 2)
    rows = [{"user": "ann", "amount": 2.5, "ts": "2026-01-01 00:00:01"}, {"user": "bob", "amount": 1, "ts": None}]
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    assert told("log", "append", log, "orders", "--by", "user", text=text)["rows"] == 2
    (topic,) = told("log", "list", log)
    assert (topic["topic"], topic["rows"], topic["partitions"]) == ("orders", 2, 2)
    found = [json.loads(line) for line in said("log", "tail", log, "orders").splitlines()]
    assert sorted((row["user"], row["amount"]) for row in found) == [("ann", 2.5), ("bob", 1.0)]
    wrong = run("log", "append", log, "orders", text=f'{text}{{"user": 1, "amount": "x"}}\n')
    assert (wrong.exit_code, "row 3 does not fit" in wrong.stderr) == (2, True)
    assert run("log", "delete", log, "orders", text="n\n").exit_code == 1
    assert told("log", "list", log)[0]["rows"] == 2
    said("log", "delete", log, "orders", "--yes")
    assert told("log", "list", log) == []
    assert list(log.glob(".deleted*")) == []
    assert "orders" in refused("log", "tail", log, "orders")


def test_a_new_project_has_a_job_and_a_test_that_passes(tmp_path: Path, refused: Any) -> None:
    folder = tmp_path / "first project"
    assert "headwater run job.py" in said("new", folder)
    said("log", "create", folder / "events", "orders", "user string, amount double, ts timestamp")
    assert "exactly-once" in said("explain", folder / "job.py", "--guarantees")
    scope: dict[str, Any] = {}
    exec((folder / "job.py").read_text(), scope)
    test = (folder / "test_job.py").read_text().replace("from job import ORDER, build, totals", "")
    exec(test, scope)
    scope["test_each_minute_is_summed_up"]()
    scope["test_result_depends_on_the_input_alone"]()
    assert "holds something" in refused("new", folder)


def test_the_doctor_looks_at_what_a_job_needs(tmp_path: Path) -> None:
    found = {one["what"]: one["verdict"] for one in told("doctor", tmp_path)}
    assert found.keys() >= {"Python", "Java", "package pyspark", "memory", "disk for job folders", "file locks"}
    assert "problem" not in found.values()
    assert "127.0.0.1" in said("doctor", tmp_path)


def test_a_machine_without_java_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr("headwater.spark.java.WELL_KNOWN", ())
    done = run("doctor", tmp_path, "--json")
    java = next(one for one in json.loads(done.stdout) if one["what"] == "Java")
    assert (done.exit_code, java["verdict"]) == (1, "problem")
    assert java["way_out"].startswith("install one")


def test_a_folder_without_jobs_is_told(tmp_path: Path, refused: Any) -> None:
    assert f"no job has a folder in {tmp_path}" in said("list", tmp_path)
    assert told("list", tmp_path) == []
    for command in (("status",), ("stop",), ("logs",), ("checkpoints", "list")):
        assert "is not the folder of a job: it has no job.json" in refused(*command, tmp_path)
        assert "there is no such folder" in refused(*command, tmp_path / "nowhere")
    assert "there is no folder" in refused("list", tmp_path / "nowhere")


def test_status_shows_the_newest_late_rows(tmp_path: Path) -> None:
    make_job_folder(tmp_path / "orders", late=10_000)
    lines = [line for line in said("status", tmp_path / "orders").splitlines() if HOSTILE in line]
    assert [line.split('"number": ')[1].strip(" }") for line in lines] == ["19", "18", "17"]
    assert len(told("status", tmp_path / "orders")["steps"]["totals"]["late_rows"]) == SHOWN


def test_help_tells_the_exit_codes() -> None:
    assert said("-h") == said("--help")
    assert "143 after SIGTERM" in " ".join(said("--help").split())


def test_the_version_is_that_of_the_package() -> None:
    assert said("--version").strip().count(".") == 2


def test_what_is_not_understood_has_an_exit_code_of_its_own(tmp_path: Path) -> None:
    assert run("fly").exit_code == 2
    assert run("run", tmp_path / "job.py", "--config", "nothing").exit_code == 2
