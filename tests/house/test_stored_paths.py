"""A path out of a stored file goes through `stored_paths.below`: no module puts such a name behind a folder itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "headwater"
STORED = ("path", "name")
"""The fields of stored records that name files."""
OWN = {
    "spark/stored.py": {"folder.name"},  # of a path that the process was given
    "epoch/manifest.py": {"file.path"},  # looks whether it is there
    "connectors/files/rolling.py": {"staged.path"},  # as the outbox has checked it
    "connectors/files/sink.py": {"file.path"},  # the same
    "epoch/outbox.py": {"file.path"},  # takes the last part of it, and checks that
    "savepoints/origin.py": {"self.path", "origin.path"},  # the savepoint that the user named
}
"""Where one is used as it is, and why that is right."""


def _is_stored(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in STORED


def _joined(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and _is_stored(node.right):
            yield ast.unparse(node.right)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "Path" and any(map(_is_stored, node.args)):
            yield ast.unparse(node.args[0])


def test_no_module_goes_around_the_check() -> None:
    found = {path.relative_to(PACKAGE).as_posix(): set(_joined(path)) for path in sorted(PACKAGE.rglob("*.py"))}
    assert {module: names for module, names in found.items() if names} == OWN
