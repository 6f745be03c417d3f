"""The dashboard in a real browser: every page of a job that runs and of the same job when it was stopped from its page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from axe_playwright_python.sync_playwright import Axe

import headwater as hw
from headwater.web import Dashboard, serve

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PAGES = ["graph", "epochs", "watermarks", "windows", "state", "late", "sinks", "failures", "savepoints", "settings"]
ORDER = "user string, ts timestamp, amount double"
START = datetime(2026, 1, 1, 12, tzinfo=UTC)
PATIENCE_MS = 120_000
"""Machines of CI are slow at times; what is waited for comes in a second or two."""


class Totals(hw.KeyedProcessFunction):
    """A running total by user."""

    total = hw.ValueState("double", default=0.0)

    def process(self, event: Any, ctx: Any) -> Iterator[dict[str, Any]]:
        self.total.set(self.total.get() + event.amount)
        yield {"user": event.user, "total": self.total.get()}


@dataclass
class Session:
    """A job, the server, and a page in the browser that has noted every complaint."""

    job: Any
    job_dir: Path
    orders: Any
    dashboard: Dashboard
    page: Page
    complaints: list[str] = field(default_factory=list)

    def open(self, name: str) -> None:
        """Go to a page of the job, as a link does, and wait until it shows what it was asked for."""
        self.page.evaluate("name => location.hash = location.hash.split('/').slice(0, 2).join('/') + '/' + name", name)
        self.page.wait_for_selector(f"nav a[aria-current][href$='/{name}']")
        self.page.wait_for_selector("main .card, main .answer", timeout=PATIENCE_MS)

    def text(self) -> str:
        return self.page.inner_text("main")


def appended(orders: Any, partition: int, *rows: tuple[str, float, float]) -> None:
    orders.append([(user, START + timedelta(seconds=at), amount) for user, at, amount in rows], partition=partition)


def watched(page: Page, complaints: list[str]) -> Page:
    page.set_default_timeout(PATIENCE_MS)
    page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    return page


@pytest.fixture(scope="module")
def running(spark: SparkSession, chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A job with a split that is silent, whose page is open."""
    folder = tmp_path_factory.mktemp("dashboard")
    orders = hw.EventLog(folder / "log").create_topic("orders", ORDER, partitions=2)
    appended(orders, 0, ("ann", 1, 20.0), ("bob", 2, 4.5), ("ann", 31, 5.5), ("cleo", 32, 1.0))
    appended(orders, 1, ("ann", 3, 1.0))
    env = hw.Environment("orders", job_dir=folder / "job", spark=spark, checkpoint_interval="300 ms")
    source = env.source(
        hw.connectors.log(folder / "log", "orders"), ORDER, hw.Watermarks.bounded("ts", "1 s"), name="orders"
    )
    by_user = source.key_by("user")
    by_user.process(Totals(), "user string, total double").with_uid("totals").sink(hw.connectors.blackhole())
    windows = by_user.window(hw.tumbling("10 s")).agg(total=hw.sum("amount")).with_uid("per-10s")
    windows.sink(hw.connectors.files(folder / "out")).with_uid("files")
    job = env.start()
    complaints: list[str] = []
    with serve([folder]) as dashboard:
        context = chromium.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
        page = watched(context.new_page(), complaints)
        page.goto(dashboard.link)
        page.click("main td a:text('orders')")
        page.wait_for_function("() => /epoch\\s+\\d/.test(document.querySelector('.job-head')?.innerText ?? '')")
        yield Session(job, folder / "job", orders, dashboard, page, complaints)
        context.close()
    if job.status().state == "running":
        job.stop()


@pytest.fixture(scope="module")
def stopped(running: Session) -> Session:
    """The job after a savepoint was taken of it and it was stopped with another, both from its page."""
    page = running.page
    running.open("savepoints")
    page.fill("#name", "while-it-runs")
    page.click("text=Take a savepoint")
    page.wait_for_selector(".note.good:has-text('Saved as while-it-runs')")
    page.fill("#name", "at-the-end")
    page.once("dialog", lambda dialog: dialog.accept())
    page.click("text=Stop with it")
    page.wait_for_selector(".note.good:has-text('its state is saved as at-the-end')")
    return running


def faults(page: Page) -> list[str]:
    """What axe finds that keeps people out."""
    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html']}" for one in found if one["impact"] in ("serious", "critical")]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_a_running_job_opens_without_complaint(running: Session, name: str) -> None:
    running.open(name)
    assert "running" in running.text()
    assert running.complaints == []
    assert faults(running.page) == []


def test_the_token_is_neither_in_the_address_nor_asked_for_again(running: Session) -> None:
    assert running.dashboard.token not in running.page.url
    running.page.reload()
    running.page.wait_for_selector("main .card")
    assert running.complaints == []


def test_it_says_which_split_keeps_a_window_from_firing(running: Session) -> None:
    running.open("windows")
    running.page.wait_for_selector("text=split '1' of source 'orders'")
    assert "12:00:00 \N{EN DASH} 2026-01-01 12:00:10" in running.text()
    running.page.click("text=Look into the state")
    running.page.wait_for_selector("td:has-text('12:00:40') + td")  # the window of 12:00:31, that partition 0 is in
    assert running.complaints == []


def test_an_epoch_is_seen_when_it_is_committed(running: Session) -> None:
    running.open("epochs")
    newest = running.job.status().epoch
    appended(running.orders, 0, ("dora", 33, 9.0))
    running.page.wait_for_function(
        "past => Number(document.querySelector('main tbody tr td')?.innerText.replaceAll(',', '')) > past", arg=newest
    )


def test_state_is_looked_up_by_key_and_by_a_query(running: Session) -> None:
    running.open("state")
    running.page.select_option("[aria-label=State]", label="totals / total")
    running.page.fill("#key", "ann")
    running.page.click("text=Look up")
    running.page.wait_for_selector(".found pre:text('26.5')")
    running.page.fill("#sql", "SELECT count(*) AS users, sum(value) AS paid FROM state WHERE key <> 'dora'")
    running.page.click("button:text('Run')")
    running.page.wait_for_selector("td:text('32')")
    running.page.fill("#sql", "COPY state TO '/tmp/stolen.csv'")
    running.page.click("button:text('Run')")
    running.page.wait_for_selector("[role=alert]:has-text('Permission Error')")
    refused = [text for text in running.complaints if "409" in text]
    assert running.complaints == refused  # the browser notes that the server refused
    running.complaints.clear()


def test_pages_are_chosen_by_keyboard(running: Session) -> None:
    running.open("graph")
    running.page.keyboard.press("2")
    running.page.wait_for_selector("nav a[aria-current]:text('Epochs')")
    running.page.keyboard.press("?")
    running.page.wait_for_selector("dialog[open]")
    running.page.keyboard.press("Escape")
    running.page.keyboard.press("j")
    running.page.wait_for_selector("h1:text('Jobs')")
    running.page.go_back()
    running.page.wait_for_selector("nav a[aria-current]:text('Epochs')")


def test_a_narrow_dark_screen_shows_every_page_without_scrolling_sideways(running: Session, chromium: Browser) -> None:
    complaints: list[str] = []
    context = chromium.new_context(viewport={"width": 400, "height": 800}, color_scheme="dark")
    narrow = Session(
        running.job,
        running.job_dir,
        running.orders,
        running.dashboard,
        watched(context.new_page(), complaints),
        complaints,
    )
    narrow.page.goto(running.dashboard.link)
    narrow.page.click("main td a:text('orders')")
    for name in PAGES:
        narrow.open(name)
        assert narrow.page.evaluate("document.documentElement.scrollWidth") <= 400, name
        assert faults(narrow.page) == [], name
    assert narrow.page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert complaints == []
    context.close()


def test_without_the_token_a_page_asks_for_it(running: Session, chromium: Browser) -> None:
    context = chromium.new_context()
    page = context.new_page()
    page.goto(running.dashboard.url)
    page.fill("[aria-label=Token]", running.dashboard.token)
    page.click("text=Open")
    page.wait_for_selector("main td a:text('orders')")
    context.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_a_stopped_job_opens_without_complaint(stopped: Session, name: str) -> None:
    stopped.open(name)
    stopped.page.wait_for_selector(".badge:text('stopped')")
    assert stopped.complaints == []
    assert faults(stopped.page) == []


def test_savepoints_are_listed_checked_and_looked_into(stopped: Session) -> None:
    stopped.open("savepoints")
    stopped.page.wait_for_selector("td .strong:text('at-the-end')")
    stopped.page.click("tr:has-text('at-the-end') button:text('Check')")
    stopped.page.wait_for_selector(".found .badge:text('whole')")
    assert re.search(r"totals\s+goes on", stopped.text())
    stopped.open("state")
    stopped.page.select_option("[aria-label=State]", label="totals / total")
    stopped.page.select_option("[aria-label=Of]", label="savepoint at-the-end")
    stopped.page.fill("#key", "bob")
    stopped.page.click("text=Look up")
    stopped.page.wait_for_selector(".found pre:text('4.5')")
    assert stopped.job.status().state == "stopped"
    assert stopped.complaints == []
