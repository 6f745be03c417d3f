from __future__ import annotations

from pathlib import Path

import pytest

import headwater as hw
from headwater.connectors.memory import RowsSource
from headwater.data.batch import MAX_TIMESTAMP
from headwater.job.progress.durations_text import long_text
from headwater.job.progress.follow import Waiting, shown
from headwater.job.progress.line import Speed, last_line, running_line
from headwater.job.splits import SplitStatus
from headwater.job.status import JobStatus
from headwater.moments import moment_text

NOON_MS = 1_714_564_800_000


def status(**splits: SplitStatus) -> JobStatus:
    return JobStatus("running", 118, splits={"orders": splits, "rules": {"0": SplitStatus(5)}}, now_ms=NOON_MS)


def test_the_line_says_epoch_rows_speed_event_time_and_what_holds_it_back() -> None:
    told = status(a=SplitStatus(1_000_000, NOON_MS), b=SplitStatus(234_562, NOON_MS - 4_200))
    assert running_line("revenue", told, 12_345.4, {"orders"}, 1_203) == (
        "revenue: epoch 118, 1,234,567 rows, 12,345/s, event time 2024-05-01 11:59:55, 4.2 s behind, held by orders/b, "
        "1,203 rows to read"
    )


def test_what_is_not_known_is_left_out() -> None:
    assert running_line("revenue", JobStatus("running"), 0, {"orders"}) == "revenue: starting"
    assert running_line("revenue", JobStatus("restarting", 7), 0, ()) == "revenue: restarting, epoch 7, 0 rows, 0/s"
    ended = status(a=SplitStatus(3, MAX_TIMESTAMP), b=SplitStatus(0, is_idle=True))
    assert running_line("revenue", ended, 0, {"orders"}) == "revenue: epoch 118, 8 rows, 0/s"
    alone = status(a=SplitStatus(3, NOON_MS))
    assert running_line("revenue", alone, 0, {"orders"}, "?").endswith("12:00:00, 0.0 s behind, ? rows to read")
    unbegun = status(a=SplitStatus(3, NOON_MS), b=SplitStatus())
    assert running_line("revenue", unbegun, 0, {"orders"}).endswith("0/s, no event time yet, held by orders/b")


def test_the_last_line_has_the_totals() -> None:
    assert last_line("revenue", status(a=SplitStatus(37)), 103_400) == (
        "revenue: running after epoch 118, 42 rows in 1 min 43 s"
    )
    assert last_line("revenue", JobStatus("failed"), 900) == "revenue: failed before its first epoch, 0 rows in 0.9 s"


def test_speed_is_that_of_the_last_seconds() -> None:
    speed = Speed()
    assert [speed.at(float(s), rows) for s, rows in [(0, 0), (1, 100), (4, 100), (6, 700), (20, 700)]] == [
        0.0,
        100.0,
        25.0,
        120.0,
        0.0,
    ]


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0, "0.0 s"), (59_999, "59 s"), (60_000, "1 min"), (7_260_000, "2 h 1 min"), (90_000_000, "1 d 1 h")],
)
def test_durations_are_in_their_two_largest_units(ms: int, text: str) -> None:
    assert long_text(ms) == text


def test_times_beyond_the_calendar_are_numbers() -> None:
    assert (moment_text(NOON_MS, millis=False), moment_text(1 << 60)) == ("2024-05-01 12:00:00", f"{1 << 60} ms")


class Still:
    name = "still"

    def status(self) -> JobStatus:
        return JobStatus("stopped", 3, positions={"log": {"0": 3}, "rows": {"0": 1}})


def test_rows_to_read_are_those_of_sources_that_can_say(tmp_path: Path) -> None:
    hw.EventLog(tmp_path).create_topic("rows", "n long").append([(n,) for n in range(10)])
    log, rows = hw.connectors.log(tmp_path, "rows"), RowsSource([[(1,)]], hw.Schema.of("n long"))
    waiting = Waiting(Still(), {"log": log, "rows": rows})
    waiting.ask()
    assert waiting.rows == 7
    waiting = Waiting(Still(), {"rows": rows})
    waiting.ask()
    assert waiting.rows is None
    waiting = Waiting(Still(), {"log": hw.connectors.log(tmp_path, "gone")})
    waiting.ask()
    assert waiting.rows == "?"


def test_lines_that_are_wanted_are_written_anywhere(capsys: pytest.CaptureFixture[str]) -> None:
    with shown(Still(), {}, wanted=None), shown(Still(), {}, wanted=False):
        """Nobody looks, and nobody wants it."""
    assert capsys.readouterr().err == ""
    with shown(Still(), {}, wanted=True):
        """It is wanted."""
    assert capsys.readouterr().err == "still: stopped after epoch 3, 0 rows in 0.0 s\n"
