"""The files of the front end, as they are in the package: all in memory, so that no path of a request is one of a file."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_KINDS = {
    "index.html": "text/html; charset=utf-8",
    "app.js": "text/javascript; charset=utf-8",
    "app.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


@dataclass(frozen=True)
class Asset:
    """A file, as it is sent."""

    kind: str
    content: bytes
    packed: bytes
    tag: str

    def answer(self, request: Request) -> Response:
        """The file, or that it has not changed since the browser had it."""
        from starlette.responses import Response

        headers = {"ETag": self.tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if self.tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(self.packed, media_type=self.kind, headers={**headers, "Content-Encoding": "gzip"})
        return Response(self.content, media_type=self.kind, headers=headers)


def load_assets() -> dict[str, Asset]:
    """By name."""
    folder = files("headwater.web") / "static"
    found = {}
    for name, kind in _KINDS.items():
        content = (folder / name).read_bytes()
        tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
        found[name] = Asset(kind, content, gzip.compress(content, mtime=0), tag)
    return found
