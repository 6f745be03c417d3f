"""Sessions: what a user did until there was half an hour without a click, and clicks that look stolen on the side.

    python examples/sessions.py                  # in this process
    python examples/sessions.py --engine spark   # the same job on Spark

Shows: list and map state, event-time timers that are right however the input is cut into epochs, a side output.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import headwater as hw

GAP_MS = 30 * 60 * 1000
CLICK = "user string, ts timestamp, page string, country string"
SESSION = "user string, start timestamp, clicks int, minutes double, new_pages array<string>"
SUSPICIOUS = hw.OutputTag("suspicious", "user string, ts timestamp, country string, home string")


class Sessions(hw.KeyedProcessFunction):
    """Gathers clicks and cuts them into sessions when the time for further clicks has passed."""

    home = hw.ValueState("string")
    waiting = hw.ListState("struct<ts: long, page: string>")
    visits = hw.MapState("string", "int")

    def process(self, click: Any, ctx: hw.Context) -> None:
        """Keep the click, unless it comes from another country than the user's first one."""
        home = self.home.get() or click.country
        self.home.set(home)
        if click.country != home:
            ctx.output(SUSPICIOUS, {"user": click.user, "ts": click.ts, "country": click.country, "home": home})
            return
        self.waiting.add({"ts": ctx.timestamp, "page": click.page})
        ctx.timers.event_time(ctx.timestamp + GAP_MS)

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Iterator[dict[str, Any]]:
        """Half an hour after a click: a session has ended, unless there was another click in that time.

        Clicks of the next session may be waiting already, because an epoch's clicks come before its timers.
        """
        clicks = sorted(self.waiting.get())
        session = [click for click in clicks if click.ts <= timer.timestamp - GAP_MS]
        rest = clicks[len(session) :]
        if not session or (rest and rest[0].ts < timer.timestamp):
            return
        self.waiting.update(rest)
        yield {
            "user": ctx.key,
            "start": datetime.fromtimestamp(session[0].ts / 1000, UTC),
            "clicks": len(session),
            "minutes": (session[-1].ts - session[0].ts) / 60_000,
            "new_pages": self._count_visits(session),
        }

    def _count_visits(self, session: list[Any]) -> list[str]:
        """Count the session's pages; gives those that the user had never visited."""
        new = []
        for click in session:
            if click.page not in self.visits:
                new.append(click.page)
            self.visits.put(click.page, self.visits.get(click.page, 0) + 1)
        return new


def at(hour: int, minute: int) -> datetime:
    """A time on the day of the example."""
    return datetime(2026, 1, 1, hour, minute, tzinfo=UTC)


CLICKS = [
    ("ann", at(9, 0), "home", "NL"),
    ("bob", at(9, 5), "home", "DE"),
    ("ann", at(9, 20), "basket", "NL"),
    ("ann", at(9, 10), "shoes", "NL"),  # out of order
    ("ann", at(9, 25), "account", "BR"),  # not where ann was
    ("bob", at(9, 35), "shoes", "DE"),  # exactly half an hour later: a new session
    ("ann", at(11, 0), "home", "NL"),
    ("ann", at(11, 1), "hats", "NL"),
]


def main(engine: str, *, max_rows_per_epoch: int = 1_000_000) -> tuple[list[Any], list[Any]]:
    """Run the job over the clicks above; the sessions and the suspicious clicks."""
    env = hw.Environment("sessions", engine=engine, max_rows_per_epoch=max_rows_per_epoch)
    clicks = env.from_rows(CLICKS, CLICK, hw.Watermarks.bounded("ts", "10 min"))
    sessions = clicks.key_by("user").process(Sessions(), SESSION)
    found, suspicious = hw.connectors.memory(), hw.connectors.memory()
    sessions.sink(found, name="sessions-out")
    sessions.side_output(SUSPICIOUS).sink(suspicious, name="suspicious-out")
    env.run()
    return sorted(found.rows), sorted(suspicious.rows)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--engine", choices=["local", "spark"], default="local")
    all_sessions, all_suspicious = main(options.parse_args().engine)
    for session in all_sessions:
        pages = ", ".join(session.new_pages) or "none"
        print(f"{session.user}  {session.start:%H:%M}  {session.clicks} clicks in {session.minutes} min, new: {pages}")
    for click in all_suspicious:
        print(f"suspicious: {click.user} at {click.ts:%H:%M} in {click.country}, at home in {click.home}")
