"""The page of late rows in a real browser, of a job that has dropped ten thousand, whose content is hostile."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from tests.web.job_folders import HOSTILE, make_job_folder

from headwater.late_rows import SHOWN
from headwater.web import serve

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SCREENS: list[tuple[int, Literal["light", "dark"]]] = [(1280, "light"), (400, "dark")]


@pytest.mark.parametrize(("width", "colours"), SCREENS)
def test_the_newest_late_rows_are_shown_as_they_are(
    width: int, colours: Literal["light", "dark"], chromium: Browser, tmp_path: Path
) -> None:
    make_job_folder(tmp_path / "orders", late=10_000)
    complaints: list[str] = []
    with serve([tmp_path]) as dashboard:
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=colours)
        page = context.new_page()
        page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
        page.on("dialog", lambda dialog: complaints.append(f"said: {dialog.message}"))
        page.goto(dashboard.link)
        page.click("main td a:text('orders')")
        page.keyboard.press("6")
        shown = page.locator("section[aria-label='Newest late rows'] tbody tr")
        shown.first.wait_for()
        assert shown.count() == SHOWN
        first = shown.first.inner_text()
        assert HOSTILE in first
        assert "the input had ended" in first
        assert f'"number": {SHOWN - 1}' in first
        assert "10,000" in page.inner_text("main")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        serious = [one for one in Axe().run(page).response["violations"] if one["impact"] in ("serious", "critical")]
        assert (serious, complaints) == ([], [])
        context.close()
