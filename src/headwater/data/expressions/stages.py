"""What one step computes of rows: columns of terms, of all rows or of those for which a condition is true."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.data.functions.terms import Term


@dataclass(frozen=True)
class Stage:
    """Columns by name, and the condition."""

    columns: tuple[tuple[str, Term], ...]
    condition: Term | None = None
