"""The texts of Nexmark: its tables and queries."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).parent
TABLES: Final = (_HERE / "tables.sql").read_text()
"""With `{connector}` and `{side_input}` where the options of connectors stand."""
QUERIES: Final = {
    path.stem: path.read_text()
    for path in sorted((_HERE / "queries").glob("*.sql"), key=lambda path: int(path.stem.removeprefix("q")))
}
"""By name, in their order."""
