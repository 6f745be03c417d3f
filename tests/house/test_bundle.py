"""The front end in the package is the one that its sources make: who changes them runs `make ui`."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

PROJECT = Path(__file__).parents[2]
FRONT_END, STATIC = PROJECT / "web", PROJECT / "src" / "headwater" / "web" / "static"
BESIDE_SRC = ("index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts", "public/icon.svg")


def test_the_bundle_was_built_from_the_sources_as_they_are() -> None:
    names = [*BESIDE_SRC, *(str(p.relative_to(FRONT_END)) for p in (FRONT_END / "src").rglob("*") if p.is_file())]
    digest = hashlib.sha256()
    for name in sorted(names):
        digest.update(name.encode() + b"\0" + (FRONT_END / name).read_bytes() + b"\0")
    assert (STATIC / "sources.sha256").read_text().strip() == digest.hexdigest(), "run `make ui` and commit the bundle"


def test_the_lock_file_names_no_address_and_a_checksum_of_every_package() -> None:
    packages = json.loads((FRONT_END / "package-lock.json").read_text())["packages"]
    outside = {name: about for name, about in packages.items() if name}
    assert outside
    assert [name for name, about in outside.items() if "resolved" in about] == []
    assert [name for name, about in outside.items() if not about.get("integrity")] == []


def test_the_page_has_no_script_or_style_of_its_own() -> None:
    page = (STATIC / "index.html").read_text()
    assert "<style" not in page
    assert page.count("<script") == page.count('src="./app.js"') == 1
