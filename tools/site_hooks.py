"""What the documentation site does to pages: those of the project's root join it, and blocks lose what only tests read."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_ROOT = Path(__file__).resolve().parent.parent
_DOCS = _ROOT / "docs"
_ROOT_PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
_NO_RUN = re.compile(r"^```(python|sh) no-run:.*$", re.MULTILINE)
_FENCED = re.compile(r"(^```.*?^```\s*$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?P<text>!?\[[^\]]*\])\((?P<path>[^)\s#:]+)(?P<anchor>#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie beside `docs`."""
    for name in _ROOT_PAGES:
        files.append(File.generated(config, name, abs_src_path=str(_ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Blocks without the word why tests leave them, links that lead to where pages are in the site."""
    here = _ROOT if page.file.src_path in _ROOT_PAGES else (_DOCS / page.file.src_path).parent
    shown_in = (_DOCS / page.file.src_path).parent

    def placed(link: re.Match[str]) -> str:
        target = Path(os.path.normpath(here / link["path"]))
        if not target.exists():
            return link[0]  # no link, or a broken one, which the build tells of
        if target.is_relative_to(_DOCS):
            there = target
        elif target.parent == _ROOT and target.name in _ROOT_PAGES:
            there = _DOCS / target.name
        else:  # a file of the repository, which the site has no page of
            return f"{link['text'][1:-1]} (`{target.relative_to(_ROOT)}`)"
        return f"{link['text']}({os.path.relpath(there, shown_in)}{link['anchor'] or ''})"

    parts = _FENCED.split(_NO_RUN.sub(r"```\1", markdown))
    return "".join(part if part.startswith("```") else _LINK.sub(placed, part) for part in parts)
