"""The documentation site: it builds without a warning, leads nowhere wrong, and asks no other server for anything."""

from __future__ import annotations

import html
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import pytest

import headwater as hw

PROJECT = Path(__file__).parents[2]
LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
"""What a browser fetches by itself; a link that one may follow (`a`) is none of it."""


class PageOfSite(HTMLParser):
    """The links, the anchors and the assets of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.assets: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in LOADED and LOADED[tag] in given:
            self.assets.append(given[LOADED[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, PageOfSite]:
    found = {path: PageOfSite(path.read_text()) for path in site.rglob("*.html")}
    assert len(found) > 60
    return found


def _is_elsewhere(target: str) -> bool:
    return re.match(r"[a-z]+:|//", target) is not None


def test_every_link_leads_to_a_page_and_a_place_in_it(site: Path, pages: dict[Path, PageOfSite]) -> None:
    broken = []
    for path, page in pages.items():
        for link in page.links:
            target, _, anchor = unquote(link).partition("#")
            if _is_elsewhere(link) or path.name == "404.html":  # its links begin at the root of a server
                continue
            there = (path.parent / target).resolve() if target else path
            is_place = not anchor or there not in pages or anchor in pages[there].ids | {"__top"}
            if not there.exists() or not is_place:
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []


def test_nothing_is_loaded_from_elsewhere(site: Path, pages: dict[Path, PageOfSite]) -> None:
    loaded = [f"{path.name}: {asset}" for path, page in pages.items() for asset in page.assets if _is_elsewhere(asset)]
    styles = [f"{path.name}: {url}" for path in site.rglob("*.css") for url in _urls(path.read_text())]
    assert loaded + styles == []


def _urls(style: str) -> Iterator[str]:
    for found in re.finditer(r"(?:url\(|@import )[\"']?(?P<url>[^\"')]+)", style):
        if re.match(r"https?:|//", found["url"]):
            yield found["url"]


def test_every_public_name_has_an_entry_with_its_docstring(site: Path, pages: dict[Path, PageOfSite]) -> None:
    folder = site / "reference" / "api"
    anchors = {one for path, page in pages.items() if path.parent == folder for one in page.ids}
    text = " ".join(html.unescape(re.sub(r"<[^>]+>", "", path.read_text())) for path in folder.glob("*.html"))
    said = " ".join(text.split())
    missing = []
    for place, thing in _public(hw, "headwater"):
        first = " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].replace("`", "").split())
        if place not in anchors or ((inspect.isclass(thing) or inspect.isfunction(thing)) and first not in said):
            missing.append(place)
    assert missing == []


def _public(module: ModuleType, place: str) -> Iterator[tuple[str, object]]:
    """What is public in a module and in the modules of it, with the anchors of their entries."""
    for name in module.__all__:
        thing = getattr(module, name)
        if isinstance(thing, ModuleType):
            yield from _public(thing, thing.__name__)
        else:
            yield f"{place}.{name}", thing


def test_blocks_do_not_show_what_is_for_tests(site: Path) -> None:
    told_of = {"CONTRIBUTING"}  # what the words mean
    marked = [path.stem for path in site.rglob("*.html") if "no-run: " in path.read_text()]
    assert set(marked) <= told_of
