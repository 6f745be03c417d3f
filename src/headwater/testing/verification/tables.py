"""What an output holds in the end, and how two runs differ in it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headwater.data.row_kinds import ROW_KIND
from headwater.testing.verification.program import Recorded

_CLOSE = 1e-9
"""How much floats may differ, relatively: a sum in another order is not the same to the last digit."""
_TAKES_AWAY = ("-U", "-D")


@dataclass(frozen=True)
class Result:
    """An output after a run."""

    names: Sequence[str]
    rows: Sequence[Any]
    """What it holds in the end, in the order in which it came."""

    def difference(self, other: Result) -> tuple[list[Any], list[Any]]:
        """The rows that only this one has, and those that only the other one has; floats may differ a little."""
        here, there = Counter(map(plain, self.rows)), Counter(map(plain, other.rows))
        known = {plain(row): row for row in (*self.rows, *other.rows)}
        return _without_close(
            [known[row] for row in (here - there).elements()], [known[row] for row in (there - here).elements()]
        )

    def in_order(self, columns: Sequence[str]) -> list[Any]:
        """The rows key by key, those of a key in the order in which they came."""
        places = [self.names.index(column) for column in columns]
        return sorted(self.rows, key=lambda row: repr([plain(row[place]) for place in places]))


def result_of(sink: Recorded, said: Sequence[str]) -> Result:
    """What an output holds after all that came to it: of a changelog the table that it describes.

    Rows replace each other by the key that is said, if one is, or by that of the output.
    """
    assert sink.schema is not None
    names = list(sink.schema.names)
    key = [name for name in said if name in names] or sink.key
    if sink.carried.is_append_only:
        if not key:
            return Result(names, sink.rows)
        return Result(names, list({_of_key(row, names, key): row for row in sink.rows}.values()))
    told = names.index(ROW_KIND)
    changes = [(row[told], (*row[:told], *row[told + 1 :])) for row in sink.rows]
    names.remove(ROW_KIND)
    return Result(names, list(_upserted(changes, names, key) if key else _net(changes)))


def _upserted(changes: Sequence[tuple[str, Any]], names: Sequence[str], key: Sequence[str]) -> Iterator[Any]:
    """The last row of each key."""
    held: dict[Any, Any] = {}
    for kind, row in changes:
        at = _of_key(row, names, key)
        if kind not in _TAKES_AWAY:
            held[at] = row
        elif kind == "-D":
            held.pop(at, None)
    yield from held.values()


def _net(changes: Sequence[tuple[str, Any]]) -> Iterator[Any]:
    """What is there when what was taken back is gone."""
    count: Counter[Any] = Counter()
    known = {}
    for kind, row in changes:
        at = plain(row)
        known[at] = row
        count[at] += -1 if kind in _TAKES_AWAY else 1
    for at, times in count.items():
        yield from [known[at]] * times


def _of_key(row: Sequence[Any], names: Sequence[str], key: Sequence[str]) -> Any:
    return plain([row[names.index(column)] for column in key])


def plain(value: Any) -> Any:
    """A value that can be looked up, and that equals another one if the two are shown alike."""
    if isinstance(value, Mapping):
        return "map", tuple(sorted(((plain(key), plain(one)) for key, one in value.items()), key=repr))
    if isinstance(value, list | tuple):
        return tuple(map(plain, value))
    return "nan" if isinstance(value, float) and math.isnan(value) else value


def _without_close(here: list[Any], there: list[Any]) -> tuple[list[Any], list[Any]]:
    """Leave pairs out that differ in the last digits of floats alone."""
    waiting: dict[Any, list[Any]] = {}
    for row in there:
        waiting.setdefault(_but_floats(row), []).append(row)
    only_here = []
    for row in here:
        near = waiting.get(_but_floats(row), [])
        at = next((at for at, other in enumerate(near) if _is_close(row, other)), None)
        if at is None:
            only_here.append(row)
        else:
            del near[at]
    return only_here, [row for rows in waiting.values() for row in rows]


def _but_floats(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return tuple(map(_but_floats, value))
    return "float" if isinstance(value, float) else plain(value)


def _is_close(one: Any, other: Any) -> bool:
    if isinstance(one, tuple | list):
        return all(map(_is_close, one, other))
    if isinstance(one, float):
        return plain(one) == plain(other) or math.isclose(one, other, rel_tol=_CLOSE)
    return True
