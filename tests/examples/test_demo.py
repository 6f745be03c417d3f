"""The demo without Spark: its events, the truth about them, its job on the local engine, and a check that sees faults."""

from __future__ import annotations

import dataclasses
import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections import Counter

import pyarrow.compute as pc
import pytest

from headwater.demo import __main__ as story
from headwater.demo import events, process
from headwater.demo.check import compare, compare_clicks, compare_sales, read
from headwater.demo.dashboard import dashboard
from headwater.demo.events import FIRST_LIMIT_CENTS, LATER_LIMIT_CENTS
from headwater.demo.job import build
from headwater.demo.limits import PartitionLine, compare_limits, read_large
from headwater.demo.minutes import MinutesLine, compare_minutes, read_minutes

COUNT = 4_000
ORDERS = COUNT // 2 + events.PARTITIONS
"""With the closing ones."""


@pytest.fixture(scope="module")
def happened():
    return events.generate(COUNT)


@pytest.fixture(scope="module")
def truth(happened):
    return events.truth_of(happened)


@pytest.fixture(scope="module")
def folder(happened, tmp_path_factory):
    """What the job makes of the events, on the local engine, in several epochs."""
    folder = tmp_path_factory.mktemp("demo")
    events.write_log(happened, folder / "log")
    build(folder, 300, engine="local").run(bounded=True)
    return folder


def test_same_seed_gives_same_events(happened):
    assert happened == events.generate(COUNT)
    assert happened != events.generate(COUNT, seed=2)


def test_events_are_half_clicks_half_orders_with_unique_ids(happened):
    assert len(happened) == COUNT + events.PARTITIONS
    assert len(happened.clicks) == len(happened.orders) == COUNT // 2
    assert 20 < happened.late < 60
    assert pc.count_distinct(happened.clicks["id"]).as_py() == COUNT // 2


def test_truth_counts_every_event_once(happened, truth):
    assert sum(one.total for one in truth.clicks.values()) == len(happened.clicks)
    assert sum(len(one.ids) for one in truth.sales.values()) == ORDERS
    cents = pc.sum(happened.orders["cents"]).as_py()
    assert sum(one.total for one in truth.sales.values()) == cents + pc.sum(happened.closing["cents"]).as_py()
    assert [sum(column) for column in zip(*truth.minutes.values(), strict=True)] == [COUNT // 2, cents]
    assert sum(cents for orders in truth.orders for cents in orders.values()) == cents


def test_job_is_exact(folder, truth):
    clicks, sales = compare_clicks(folder / "clicks", truth), compare_sales(folder / "sales", truth)
    assert clicks.exact
    assert sales.exact
    total = sales.total()
    assert (total.events, total.rows, total.lost, total.doubled) == (ORDERS, ORDERS, 0, 0)
    assert total.expected == total.found


@pytest.fixture
def rows(folder):
    return list(read(folder / "sales", ["product", "id", "orders", "cents"]))


def test_lost_row_is_found(rows, truth):
    key = rows.pop(500)[0]
    found = compare(rows, truth.sales)
    assert not found.exact
    assert [(line.key, line.lost, line.doubled) for line in found.lines if not line.exact] == [(key, 1, 0)]
    assert found.total().lost == 1


def test_doubled_row_is_found(rows, truth):
    rows.append(rows[500])
    found = compare(rows, truth.sales)
    assert not found.exact
    assert found.lines[0].key == rows[500][0]
    assert (found.lines[0].lost, found.lines[0].doubled) == (0, 1)


def test_one_lost_and_one_doubled_row_do_not_make_up_for_each_other(rows, truth):
    key = rows[500][0]
    same_key = [at for at, row in enumerate(rows) if row[0] == key]
    rows[same_key[0]] = rows[same_key[1]]
    found = compare(rows, truth.sales)
    assert (found.total().lost, found.total().doubled, found.total().rows) == (1, 1, ORDERS)


def test_wrong_total_is_found(rows, truth):
    last = max((row for row in rows if row[0] == rows[0][0]), key=lambda row: row[2])
    rows[rows.index(last)] = (*last[:3], last[3] + 1)
    assert [line.found - line.expected for line in compare(rows, truth.sales).lines if not line.exact] == [1]


def test_count_that_started_again_is_found(rows, truth):
    """As if state had been lost: every event once, but numbered from 1 twice."""
    key = rows[0][0]
    mine = sorted((row for row in rows if row[0] == key), key=lambda row: row[2])
    again = [(k, i, n - 5 if 5 < n < len(mine) else n, t) for k, i, n, t in mine]
    found = compare([row for row in rows if row[0] != key] + again, truth.sales)
    assert not found.exact
    assert (found.total().lost, found.total().doubled) == (0, 0)


def test_unknown_key_and_missing_key_are_found(rows, truth):
    key = rows[0][0]
    found = compare([("nobody", *row[1:]) if row[0] == key else row for row in rows], truth.sales)
    assert {line.key for line in found.lines if not line.exact} == {key, "nobody"}


def test_wrong_lines_come_first(rows, truth):
    quiet = min(truth.sales, key=lambda key: len(truth.sales[key].ids))
    found = compare([row for row in rows if row[0] != quiet], truth.sales)
    assert found.lines[0].key == quiet
    assert found.lines[0].rows == 0


@pytest.fixture
def minutes(folder, happened):
    """The results but those of the last minute, which a job that is not at the end of its input does not give."""
    last = happened.closing["ts"][0].as_py()
    return {window: results for window, results in read_minutes(folder / "minutes").items() if window[1] != last}


def test_late_orders_correct_their_minutes(minutes, truth):
    lines = compare_minutes(minutes, truth.minutes)
    total = MinutesLine.over(lines)
    assert total.exact
    assert total.minutes == len(truth.minutes)
    assert total.corrections > 0
    assert total.expected == total.found


@pytest.mark.parametrize(
    "fault", ["no window", "no first result", "no last result", "doubled result", "another window"]
)
def test_fault_in_minutes_is_found(fault, minutes, truth):
    window = next(window for window, results in minutes.items() if len(results) > 1)
    results = minutes.pop(window)
    if fault == "another window":
        minutes[window[0], window[1].replace(year=2030)] = results
    elif fault != "no window":
        changed = {
            "no first result": results[1:],
            "no last result": results[:-1],
            "doubled result": [*results, results[-1]],
        }
        minutes[window] = changed[fault]
    lines = compare_minutes(minutes, truth.minutes)
    assert [line.product for line in lines if not line.exact] == [window[0]]
    assert lines[0].product == window[0]


def test_large_orders_are_exact(folder, truth):
    told = read_large(folder / "large")
    total = PartitionLine.over(compare_limits(told, truth.orders, FIRST_LIMIT_CENTS, LATER_LIMIT_CENTS))
    assert total.exact
    assert (total.before, total.after) == (sum(told.values()), 0)


@pytest.fixture
def told(truth):
    """As if the limit had changed at the 300th order of each partition."""
    return Counter(
        (number, limit)
        for orders in truth.orders
        for place, (number, cents) in enumerate(orders.items())
        if cents > (limit := FIRST_LIMIT_CENTS if place < 300 else LATER_LIMIT_CENTS)
    )


def by_limits(told, truth):
    return compare_limits(told, truth.orders, FIRST_LIMIT_CENTS, LATER_LIMIT_CENTS)


def test_limit_may_change_at_one_place_of_a_partition(told, truth):
    lines = by_limits(told, truth)
    assert all(line.exact and line.before > 0 and line.after > 0 for line in lines)


@pytest.mark.parametrize(("fault", "found"), [("lost", (1, 0, 0)), ("doubled", (0, 1, 0)), ("other limit", (1, 0, 1))])
def test_fault_in_large_orders_is_found(fault, found, told, truth):
    number, above = max(told)
    if fault == "doubled":
        told[number, above] += 1
    else:
        del told[number, above]
    if fault == "other limit":
        told[number, FIRST_LIMIT_CENTS] += 1
    total = PartitionLine.over(by_limits(told, truth))
    assert (total.lost, total.doubled, total.wrong) == found


def test_dashboard_answers_while_it_is_needed(tmp_path):
    with dashboard(tmp_path) as address:
        assert address is not None
        with urllib.request.urlopen(address, timeout=60) as answer:
            assert answer.status == 200
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address, timeout=60)


def test_demo_without_the_packages_of_the_dashboard_has_none(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with dashboard(tmp_path) as address:
        assert address is None


def test_standing_of_a_new_folder(tmp_path):
    assert process.standing(tmp_path) == process.Standing(epoch=-1, events=0, planned=-1, committed=-1, staged=0)


def test_standing_is_read_from_the_folder(tmp_path):
    outbox, staging = tmp_path / "job" / "outbox", tmp_path / "clicks" / "_headwater" / "staging"
    offsets, commits = tmp_path / "job" / "checkpoint" / "offsets", tmp_path / "job" / "checkpoint" / "commits"
    for folder in (outbox, staging, offsets, commits):
        folder.mkdir(parents=True)
    shape = {"parallelism": 1, "key groups": 128, "sources": [], "steps": {}}
    (tmp_path / "job" / "job.json").write_text(json.dumps({"job": "demo", "id": "1", "shape": shape}))
    positions = {"clicks": {"0": 10, "1": 20}, "orders": {"0": 5}}
    (outbox / "published.json").write_text(json.dumps({"epoch": 9, "end": False, "positions": positions}))
    for name in ("0000000009-clicks-a.parquet", "0000000010-clicks-b.parquet"):
        (staging / name).touch()
    for number in (9, 10):
        (offsets / str(number)).touch()
        (offsets / f".{number}.crc").touch()
    (commits / "9").touch()
    now = process.standing(tmp_path)
    assert now == process.Standing(epoch=9, events=35, planned=10, committed=9, staged=1)
    assert "epoch 10 was under way with 1 files staged" in story._left_behind(now)
    assert "committed" in story._left_behind(dataclasses.replace(now, committed=10))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_kill_reaches_processes_that_left_the_group(tmp_path, monkeypatch):
    """As Spark's Python workers do."""
    script = (
        "import os, time; pid = os.fork(); pid or os.setpgid(0, 0); pid or print('ready', flush=True); time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, start_new_session=True)
    monkeypatch.setattr(process.subprocess, "Popen", lambda *_, **__: child)
    job = process.JobProcess(tmp_path, 1)
    assert child.stdout is not None
    with child.stdout:
        assert child.stdout.readline() == b"ready\n"
        assert job.kill() == 2
    assert job.exit_code() == -signal.SIGKILL


@pytest.mark.parametrize("arguments", [["--events", "10"], ["--kills", "-1"], ["--folder", "{used}"]])
def test_bad_arguments_are_refused(arguments, tmp_path, monkeypatch, capsys):
    (tmp_path / "something").touch()
    given = [str(tmp_path) if argument == "{used}" else argument for argument in arguments]
    monkeypatch.setattr(sys, "argv", ["demo", *given])
    with pytest.raises(SystemExit) as ended:
        story.main()
    assert ended.value.code == 2
    assert arguments[0] in capsys.readouterr().err
