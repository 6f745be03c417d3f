"""Draws the pictures of windows and watermarks in the documents, each from a run of the job that it shows.

`python docs/pictures/draw_windows.py` writes them into docs/images, or into the folder that is given.
A test keeps the committed files the same as what this writes.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import headwater as hw
from headwater.testing import Harness, TimedRows

IMAGES = Path(__file__).parents[1] / "images"
LATE = hw.OutputTag("late", "score int")

INK, FAINT, GRID = "#1f2a37", "#5b6b7d", "#dfe5ec"
WATERMARK = "#c0392b"
KINDS = {"early": "#2e6fb7", "on_time": "#2f8f4e", "late": "#c77700"}


# -- the worked example: nine scores of one team -----------------------------------------------------------------------


def clock(text: str) -> int:
    """Milliseconds after twelve, of minutes and seconds such as 05:19."""
    minutes, seconds = text.split(":")
    return (60 * int(minutes) + int(seconds)) * 1000


@dataclass(frozen=True)
class Score:
    """A value with its event time, and when it arrived."""

    value: int
    event_ms: int
    arrival_ms: int


def scores(first_arrival: str = "05:19") -> list[Score]:
    """The nine scores, in order of arrival."""
    table = [
        (5, "00:26", first_arrival),
        (7, "02:26", "05:39"),
        (3, "03:39", "06:13"),
        (4, "04:19", "06:39"),
        (8, "03:06", "07:06"),
        (3, "06:39", "07:19"),
        (9, "01:26", "08:19"),
        (8, "07:26", "08:39"),
        (1, "07:46", "09:00"),
    ]
    return [Score(value, clock(event), clock(arrival)) for value, event, arrival in table]


WATERMARKS = {
    "perfect": [("08:39", "02:00"), ("09:00", "04:00"), ("09:10", "06:00"), ("09:20", "08:00")],
    "heuristic": [("06:00", "02:00"), ("07:30", "04:00"), ("07:40", "06:00"), ("09:30", "08:00")],
}
"""When the watermark moved, and where to."""


@dataclass(frozen=True)
class Pane:
    """One firing of a window."""

    start_ms: int
    value: int
    kind: str
    fired_ms: int


@dataclass(frozen=True)
class Run:
    """What came of the scores under a watermark."""

    title: str
    scores: list[Score]
    watermark: list[tuple[int, int]]
    panes: list[Pane]
    late: list[int]
    """The values of the scores that were too late."""


def drive(build: Callable[[Any], Any], given: list[Score], name: str) -> Run:
    """Give the scores and watermarks to the harness, each at its time; the clock ticks every second."""
    harness = Harness(build, "team string, score int")
    watermark = [(clock(at), clock(to)) for at, to in WATERMARKS[name]]
    panes, late = [], []
    for now_ms in range(clock("04:00"), clock("10:00"), 1000):
        harness.advance_to(now_ms)
        for score in given:
            if score.arrival_ms == now_ms:
                harness.push(("red", score.value), at=score.event_ms)
        for at_ms, to_ms in watermark:
            if at_ms == now_ms:
                harness.watermark(to_ms)
        for row in harness.take():
            start_ms = round(row.window_start.timestamp() * 1000)
            panes.append(Pane(start_ms, row.total, row.pane_kind, now_ms))
        late += [row.score for row in harness.take(LATE)]
    return Run(f"{name} watermark", given, watermark, panes, late)


def two_minutes(stream: Any) -> Any:
    """Windows of two minutes for each team."""
    return stream.key_by("team").window(hw.tumbling("2 min")).panes("accumulating", info=True)


def on_time_only(stream: Any) -> Any:
    """A result when the watermark passes the window's end; what comes later is late."""
    return two_minutes(stream).late_to(LATE).agg(total=hw.sum("score"))


def early_on_time_late(stream: Any) -> Any:
    """Results early, on time and late."""
    trigger = hw.early(every="1 min").on_time().late(each=True)
    return two_minutes(stream).trigger(trigger).allow_lateness("10 min").agg(total=hw.sum("score"))


# -- eager and relaxed watermarks over one stream ----------------------------------------------------------------------

READING = "sensor string, ts long"
LATE_READING = hw.OutputTag("late", "ts long")
SECOND_MS, WINDOW_MS, SPAN_MS, TICK_MS = 1000, 10_000, 60_000, 250


class WhenItFired(hw.ProcessWindowFunction):
    """The window's end, and the time at which its result came."""

    def process(self, elements: list[Any], ctx: hw.WindowContext) -> Any:
        yield {"end_ms": ctx.window.end, "fired_ms": ctx.now}


class WhereTheWatermarkIs(hw.KeyedProcessFunction):
    """The watermark that each row meets."""

    def process(self, event: Any, ctx: hw.Context) -> Any:
        yield {"now_ms": ctx.now, "watermark_ms": ctx.watermark}


@dataclass(frozen=True)
class Choice:
    """What a watermark's delay led to."""

    title: str
    readings: list[tuple[int, int]]
    """Arrival and event time."""
    watermark: list[tuple[int, int]]
    fired: list[tuple[int, int]]
    """The end of a window, and when its result came."""
    late: set[int]


def readings() -> list[tuple[int, int]]:
    """Arrival and event time of readings: most come soon, some after up to 20 seconds."""
    chance = random.Random(4)  # noqa: S311  the same stream every time
    times = [(200 + 400 * n, chance.random()) for n in range(200)]
    return sorted((event_ms + round(20_000 * late**6), event_ms) for event_ms, late in times)


def choose(delay: str) -> Choice:
    """Run the readings under a bounded watermark."""
    given = readings()
    env = hw.Environment("delays", engine="local", checkpoint_interval="1 ms")
    source = TimedRows([[(at, ("s1", ts)) for at, ts in given]], READING)
    stream = env.source(source, READING, hw.Watermarks.bounded("ts", delay)).key_by("sensor")
    results, late, seen = hw.connectors.memory(), hw.connectors.memory(), hw.connectors.memory()
    windows = stream.window(hw.tumbling("10 s")).late_to(LATE_READING)
    step = windows.agg(n=hw.count(), process=WhenItFired(), schema="end_ms long, fired_ms long")
    step.sink(results)
    step.side_output(LATE_READING).sink(late)
    stream.process(WhereTheWatermarkIs(), "now_ms long, watermark_ms long").sink(seen)
    env.run(clock=lambda epoch: TICK_MS * epoch)
    return Choice(
        f"{delay} behind",
        [(at, ts) for at, ts in given if ts < SPAN_MS],
        [(row.now_ms, row.watermark_ms) for row in seen.rows],
        sorted((row.end_ms, row.fired_ms) for row in results.rows if row.end_ms <= SPAN_MS),
        {row.ts for row in late.rows},
    )


# -- drawing -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Panel:
    """A plot of event time (to the right) against processing time (upwards), as pieces of SVG."""

    left: int
    top: int
    width: int
    height: int
    event_ms: tuple[int, int]
    processing_ms: tuple[int, int]
    out: list[str]

    def x(self, event_ms: int) -> str:
        """Where an event time is, kept inside the panel."""
        first, last = self.event_ms
        return _number(self.left + self.width * (min(max(event_ms, first), last) - first) / (last - first))

    def y(self, processing_ms: int) -> str:
        """Where a processing time is, kept inside the panel."""
        first, last = self.processing_ms
        share = (min(max(processing_ms, first), last) - first) / (last - first)
        return _number(self.top + self.height * (1 - share))

    def frame(self, title: str, step_ms: tuple[int, int], label: Callable[[int], str]) -> None:
        """The title, the grid and the axes."""
        bottom, right = self.top + self.height, self.left + self.width
        self.text(self.left, self.top - 14, title, f'font-weight="bold" fill="{INK}"')
        for at in range(self.event_ms[0], self.event_ms[1] + 1, step_ms[0]):
            self.line((self.x(at), self.top), (self.x(at), bottom), GRID)
            self.text(self.x(at), bottom + 16, label(at), f'text-anchor="middle" fill="{FAINT}" font-size="11"')
        for at in range(self.processing_ms[0], self.processing_ms[1] + 1, step_ms[1]):
            self.line((self.left, self.y(at)), (right, self.y(at)), GRID)
            style = f'text-anchor="end" fill="{FAINT}" font-size="11"'
            self.text(self.left - 6, float(self.y(at)) + 4, label(at), style)
        self.text(self.left + self.width / 2, bottom + 34, "event time", f'text-anchor="middle" fill="{FAINT}"')
        place = f"translate({self.left - 44},{_number(self.top + self.height / 2)}) rotate(-90)"
        self.text(0, 0, "processing time", f'text-anchor="middle" fill="{FAINT}" transform="{place}"')

    def watermark(self, moves: list[tuple[int, int]], width: int) -> None:
        """A line that goes up while the watermark stands, and right where it moves."""
        path, at_ms = [f"M{self.x(self.event_ms[0])},{self.y(self.processing_ms[0])}"], self.event_ms[0]
        for now_ms, to_ms in moves:
            if to_ms > at_ms:
                path.append(f"V{self.y(now_ms)} H{self.x(to_ms)}")
                at_ms = to_ms
        path.append(f"V{self.y(self.processing_ms[1])}")
        self.out.append(f'<path d="{" ".join(path)}" fill="none" stroke="{WATERMARK}" stroke-width="{width}"/>')

    def line(self, start: tuple[Any, Any], end: tuple[Any, Any], colour: str, width: float = 1) -> None:
        """A straight line."""
        (x1, y1), (x2, y2) = start, end
        self.out.append(
            f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}" stroke-width="{_number(width)}"/>'
        )

    def text(self, x: Any, y: Any, words: str, style: str) -> None:
        """Some words."""
        self.out.append(f'<text x="{_placed(x)}" y="{_placed(y)}" {style}>{words}</text>')

    def dot(self, x: str, y: str, radius: float, fill: str, edge: str) -> None:
        """A dot."""
        self.out.append(f'<circle cx="{x}" cy="{y}" r="{_number(radius)}" fill="{fill}" stroke="{edge}"/>')


def draw_run(panel: Panel, run: Run) -> None:
    """Windows as boxes from their first score to their last firing, each firing as an edge with its value."""
    panel.frame(run.title, (clock("02:00"), clock("01:00")), lambda ms: f"12:{ms // 60_000:02d}")
    panel.watermark(run.watermark, 5)  # firings lie on it
    for start_ms in sorted({pane.start_ms for pane in run.panes}):
        draw_window(panel, run, start_ms, start_ms + clock("02:00"))
    for score in run.scores:
        is_late = score.value in run.late
        fill, words = ("#ffffff", KINDS["late"]) if is_late else (INK, "#ffffff")
        x, y = panel.x(score.event_ms), panel.y(score.arrival_ms)
        panel.dot(x, y, 9, fill, KINDS["late"] if is_late else INK)
        style = f'text-anchor="middle" fill="{words}" font-size="11"'
        panel.text(x, float(y) + 4, str(score.value), style)
        if is_late:
            panel.text(float(x) + 13, float(y) + 4, "too late", f'fill="{KINDS["late"]}" font-size="11"')


def draw_window(panel: Panel, run: Run, start_ms: int, end_ms: int) -> None:
    """One window with its firings."""
    panes = [pane for pane in run.panes if pane.start_ms == start_ms]
    x, right = float(panel.x(start_ms)) + 2, float(panel.x(end_ms)) - 2
    first_ms = min(score.arrival_ms for score in run.scores if start_ms <= score.event_ms < end_ms)
    for number, pane in enumerate(panes):
        bottom = panel.y(panes[number - 1].fired_ms if number else first_ms)
        top, colour = panel.y(pane.fired_ms), KINDS[pane.kind]
        size = f'width="{_number(right - x)}" height="{_number(float(bottom) - float(top))}"'
        panel.out.append(f'<rect x="{_number(x)}" y="{top}" {size} fill="{colour}" fill-opacity="0.13"/>')
        panel.line((_number(x), top), (_number(right), top), colour, 2)
        below = 15 if pane.kind == "early" else -5  # an early firing may be a second before the one on time
        words = f"{pane.value} {pane.kind.replace('_', ' ')}"
        panel.text(x + 3, float(top) + below, words, f'fill="{colour}" font-size="12" font-weight="bold" {HALO}')


HALO = 'stroke="#ffffff" stroke-width="3" paint-order="stroke"'
"""Keeps words readable over lines."""


def draw_choice(panel: Panel, choice: Choice) -> None:
    """Readings as dots, late ones marked; results as edges at the time they came."""
    panel.frame(choice.title, (WINDOW_MS, WINDOW_MS), lambda ms: f"{ms // SECOND_MS} s")
    for end_ms, fired_ms in choice.fired:
        x, right = float(panel.x(end_ms - WINDOW_MS)) + 2, float(panel.x(end_ms)) - 2
        top, bottom = panel.y(fired_ms), panel.y(end_ms)
        size = f'width="{_number(right - x)}" height="{_number(float(bottom) - float(top))}"'
        panel.out.append(f'<rect x="{_number(x)}" y="{top}" {size} fill="{KINDS["on_time"]}" fill-opacity="0.18"/>')
        panel.line((_number(x), top), (_number(right), top), KINDS["on_time"], 2)
    panel.watermark(choice.watermark, 2)
    for arrival_ms, event_ms in choice.readings:
        is_late = event_ms in choice.late
        colour = KINDS["late"] if is_late else INK
        panel.dot(panel.x(event_ms), panel.y(arrival_ms), 3.5 if is_late else 2.2, colour, colour)
    late = sum(event_ms in choice.late for _, event_ms in choice.readings)
    waits = [fired_ms - end_ms for end_ms, fired_ms in choice.fired]
    mean = sum(waits) / len(waits) / SECOND_MS
    words = f"{late} of {len(choice.readings)} rows too late, results {mean:.1f} s after their window's end"
    panel.text(panel.left, panel.top + panel.height + 58, words, f'fill="{INK}"')


def legend(out: list[str], left: int, top: int, kinds: tuple[str, ...], dot: str) -> None:
    """What the colours mean."""
    panel = Panel(left, top, 1, 1, (0, 1), (0, 1), out)
    style = f'fill="{FAINT}" font-size="12"'
    panel.dot(str(left + 6), str(top), 5, INK, INK)
    panel.text(left + 18, top + 4, dot, style)
    names = [("watermark", WATERMARK), *((f"result {kind.replace('_', ' ')}", KINDS[kind]) for kind in kinds)]
    for number, (name, colour) in enumerate(names):
        x = left + 110 + 125 * number
        panel.line((x, top), (x + 22, top), colour, 2)
        panel.text(x + 28, top + 4, name, style)


def page(width: int, height: int, label: str, out: list[str]) -> str:
    """The whole picture."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img"\n     aria-label="{label}"\n     font-family="Helvetica, Arial, sans-serif" font-size="13">\n'
    )
    ground = f'  <rect width="{width}" height="{height}" fill="#ffffff"/>\n'
    return head + ground + "".join(f"  {piece}\n" for piece in out) + "</svg>\n"


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _placed(value: Any) -> str:
    return value if isinstance(value, str) else _number(value)


def picture_of_runs(label: str, build: Callable[[Any], Any], given: list[Score], kinds: tuple[str, ...]) -> str:
    """The scores under the perfect and under the heuristic watermark, side by side."""
    out: list[str] = []
    times = (given[0].arrival_ms // 60_000 * 60_000, clock("10:00"))
    for number, name in enumerate(WATERMARKS):
        panel = Panel(70 + 480 * number, 40, 400, 400, (0, clock("08:00")), times, out)
        draw_run(panel, drive(build, given, name))
    legend(out, 70, 500, kinds, "score")
    return page(970, 520, label, out)


def picture_of_choices() -> str:
    """An eager and a relaxed watermark over the same readings, side by side."""
    out: list[str] = []
    for number, delay in enumerate(("1 s", "10 s")):
        panel = Panel(70 + 480 * number, 40, 400, 400, (0, SPAN_MS), (0, 80_000), out)
        draw_choice(panel, choose(delay))
    legend(out, 70, 525, ("on_time",), "row")
    panel.dot("445", "525", 3.5, KINDS["late"], KINDS["late"])
    panel.text(457, 529, "row too late", f'fill="{FAINT}" font-size="12"')
    return page(970, 545, "An eager and a relaxed watermark over the same rows", out)


def pictures() -> dict[str, str]:
    """All pictures, by the names of their files."""
    return {
        "windows-on-time.svg": picture_of_runs(
            "Windows that fire when the watermark passes their end", on_time_only, scores(), ("on_time",)
        ),
        "windows-early-on-time-late.svg": picture_of_runs(
            "Windows that fire early, on time and late",
            early_on_time_late,
            scores(first_arrival="04:59"),
            ("early", "on_time", "late"),
        ),
        "watermarks-eager-relaxed.svg": picture_of_choices(),
    }


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    for file, content in pictures().items():
        (folder / file).write_text(content)
