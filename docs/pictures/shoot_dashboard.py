"""Takes the pictures of the dashboard in docs/images: of a job that runs, in Debian's Chromium.

    python docs/pictures/shoot_dashboard.py JOBS [FOLDER]    # JOBS holds the folder of a job that runs

They are taken when the dashboard changes, and looked at; no test compares them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from headwater.web import serve

IMAGES = Path(__file__).parents[1] / "images"
PICTURES = {
    "graph": ("graph", 1280, "light"),
    "windows": ("windows", 1280, "light"),
    "epochs-dark": ("epochs", 1280, "dark"),
    "windows-narrow-dark": ("windows", 400, "dark"),
}
"""By name: the page, its width, and the colours."""


def shoot(page: Page, link: str, name: str, file: Path) -> None:
    """Open a page of the job that runs."""
    page.goto(link)
    page.click("main tr:has(.badge:text('running')) a")
    page.evaluate("name => location.hash = location.hash.split('/').slice(0, 2).join('/') + '/' + name", name)
    page.wait_for_selector("main .card, main .answer")
    if name == "windows":
        page.click("text=Look into the state")
        page.wait_for_selector("main .card td", timeout=120_000)
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_timeout(1_500)  # bars come to rest
    page.screenshot(path=file, full_page=name == "windows")


def main() -> None:
    """Take all of them."""
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else IMAGES
    with serve([sys.argv[1]]) as dashboard, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        for name, (page, width, scheme) in PICTURES.items():
            context = browser.new_context(viewport={"width": width, "height": 860}, color_scheme=scheme)
            shoot(context.new_page(), dashboard.link, page, folder / f"dashboard-{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
