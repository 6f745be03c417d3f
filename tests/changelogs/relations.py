"""Random relations over changing tables: each as a stream of the library, and as the rows it must hold in the end.

A relation has the columns `id, k, v`, so that any of them can be read by any step. The rows it must hold are computed by
plain Python from the rows its sources hold in the end: nothing of how they came to be.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import headwater as hw

Rows = list[tuple[int, int, int | None]]
"""Of each row `id, k, v`; `k` is never null."""
COLUMNS = "id long, k long, v long"


@dataclass(frozen=True)
class Relation:
    """A changing table."""

    stream: hw.Stream
    rows: Rows
    is_source: bool = False
    """Whether a row still has the event time that it came with."""


class RelationMaker:
    """Makes relations by chance; the same seed makes the same."""

    def __init__(self, seed: int, env: hw.Environment) -> None:
        self._random, self._env = random.Random(seed), env
        self._names = 0

    def relation(self, depth: int) -> Relation:
        """A relation of at most so many steps above its sources."""
        if depth == 0:
            return self._random.choice([self._appended, self._changed, self._upserted])()
        steps = [self._where, self._select, self._map, self._flat_map, self._filter]
        steps += [self._totals, self._joined, self._union, self._windows] * 2
        return self._random.choice(steps)(depth - 1)

    # -- sources ----------------------------------------------------------------------------------------------------

    def _appended(self) -> Relation:
        rows = [self._row(number) for number in range(self._random.randrange(1, 12))]
        return Relation(self._read(rows), rows, is_source=True)

    def _changed(self) -> Relation:
        kept, told = self._history()
        changes = [(*row, kind) for row, kind in told]
        return Relation(self._read(changes, "row_kind").as_changelog(), kept, is_source=True)

    def _upserted(self) -> Relation:
        kept, told = self._history()
        if self._random.random() < 0.5 and not any(kind == "-D" for _, kind in told):
            rows = [row for row, kind in told if kind != "-U"]
            return Relation(self._read(rows).as_changelog(key="id").with_uid(self._name("upserts")), kept)
        changes = [(*row, kind) for row, kind in told if kind != "-U"]
        return Relation(self._read(changes, "row_kind").as_changelog(key="id").with_uid(self._name("upserts")), kept)

    def _history(self) -> tuple[Rows, list[tuple[Any, str]]]:
        """What is left of a table, and what happened to it; rows have different ids."""
        table: dict[int, Any] = {}
        told: list[tuple[Any, str]] = []
        for number in range(self._random.randrange(1, 16)):
            which = self._random.choice(list(table)) if table else None
            what = self._random.random()
            if which is None or what < 0.5:
                table[number] = self._row(number)
                told.append((table[number], "+I"))
            elif what < 0.8:
                told.append((table[which], "-U"))
                table[which] = self._row(which)
                told.append((table[which], "+U"))
            else:
                told.append((table.pop(which), "-D"))
        return list(table.values()), told

    def _row(self, number: int) -> Any:
        value = None if self._random.random() < 0.15 else self._random.randrange(-3, 10)
        return (number, self._random.randrange(4), value)

    def _read(self, rows: list[Any], *columns: str) -> hw.Stream:
        """Rows, each with an event time that its id gives; none of them is late."""
        timed = [(*row, row[0] * 1000) for row in rows]
        schema = ", ".join([COLUMNS, *(f"{column} string" for column in columns), "at long"])
        times = hw.Watermarks.bounded("at", "1 h")
        return self._env.from_rows(timed, schema, times, name=self._name("rows")).select("id", "k", "v", *columns)

    def _name(self, what: str) -> str:
        self._names += 1
        return f"{what}{self._names}"

    # -- steps on one relation --------------------------------------------------------------------------------------

    def _where(self, depth: int) -> Relation:
        above = self.relation(depth)
        text, keeps = self._random.choice(_CONDITIONS)
        return Relation(above.stream.where(text), [row for row in above.rows if keeps(*row)], above.is_source)

    def _filter(self, depth: int) -> Relation:
        above = self.relation(depth)
        _, keeps = self._random.choice(_CONDITIONS)
        kept = above.stream.filter(lambda row: keeps(row.id, row.k, row.v))
        return Relation(kept, [row for row in above.rows if keeps(*row)], above.is_source)

    def _select(self, depth: int) -> Relation:
        above = self.relation(depth)
        keeps_id = self._random.random() < 0.5
        number = "id" if keeps_id else "id * 2 as id"
        selected = above.stream.select(number, "cast((k + 1) % 4 as bigint) as k", "v * 2 as v")
        rows = [(i if keeps_id else i * 2, (k + 1) % 4, None if v is None else v * 2) for i, k, v in above.rows]
        return Relation(selected, rows, above.is_source)

    def _map(self, depth: int) -> Relation:
        above = self.relation(depth)
        mapped = above.stream.map(lambda row: (row.id, row.k, None if row.v is None else row.v + 1))
        return Relation(mapped, [(i, k, None if v is None else v + 1) for i, k, v in above.rows], above.is_source)

    def _flat_map(self, depth: int) -> Relation:
        above = self.relation(depth)
        spread = above.stream.flat_map(lambda row: [(row.id, at, row.v) for at in range(row.k)])
        return Relation(spread, [(i, at, v) for i, k, v in above.rows for at in range(k)], above.is_source)

    def _totals(self, depth: int) -> Relation:
        """The totals of a table by key. Over rows that are only added `agg` tells each of them anew, so they replace."""
        above = self.relation(depth)
        name, (make, compute) = self._random.choice(list(_AGGREGATES.items()))
        totals = above.stream.key_by("k").agg(n=hw.count(), x=make()).with_uid(self._name("agg"))
        if totals.changelog.is_append_only:
            totals = totals.as_changelog(key="k").with_uid(self._name("totals"))
        groups: dict[int, list[Any]] = {}
        for row in above.rows:
            groups.setdefault(row[1], []).append(row)
        rows = [(k, len(group) % 4, compute([v for _, _, v in group])) for k, group in groups.items()]
        shown = "cast(x as bigint)" if name != "collected" else "cast(size(x) as bigint)"
        return Relation(totals.select("k as id", "cast(n % 4 as bigint) as k", f"{shown} as v"), rows)

    def _windows(self, depth: int) -> Relation:
        """Totals of windows: all rows are in one that is open until the input ends. They need times that stay."""
        above = self.relation(depth)
        if not above.is_source:
            return self._totals(depth)
        make, compute = self._random.choice([one for name, one in _AGGREGATES.items() if name != "collected"])
        windows = above.stream.key_by("k").window(hw.tumbling("1 h"))
        if self._random.random() < 0.5:
            windows = windows.trigger(hw.triggers.continuous("3 s")).panes("retracting")
        totals = windows.agg(n=hw.count(), x=make()).with_uid(self._name("windows"))
        groups: dict[int, list[Any]] = {}
        for row in above.rows:
            groups.setdefault(row[1], []).append(row)
        shown = totals.select("k as id", "cast(n % 4 as bigint) as k", "cast(x as bigint) as v")
        return Relation(shown, [(k, len(group) % 4, compute([v for _, _, v in group])) for k, group in groups.items()])

    # -- steps on two -----------------------------------------------------------------------------------------------

    def _union(self, depth: int) -> Relation:
        one, two = self.relation(depth), self.relation(depth)
        return Relation(one.stream.union(two.stream), one.rows + two.rows, one.is_source and two.is_source)

    def _joined(self, depth: int) -> Relation:
        left, right = self.relation(depth), self.relation(depth)
        how = self._random.choice(["inner", "left", "right", "full"])
        pairs = left.stream.join_regular(right.stream, on="k", how=how, name=self._name("join"))
        shown = pairs.select("coalesce(id, id_right) as id", "k", "coalesce(v, 0) * 10 + coalesce(v_right, 0) as v")
        rows: list[Any] = []
        for i, k, v in left.rows:
            met = [(j, w) for j, other, w in right.rows if other == k]
            rows += [(i, k, (v or 0) * 10 + (w or 0)) for _, w in met]
            if not met and how in ("left", "full"):
                rows.append((i, k, (v or 0) * 10))
        if how in ("right", "full"):
            keys = {k for _, k, _ in left.rows}
            rows += [(j, k, w or 0) for j, k, w in right.rows if k not in keys]
        return Relation(shown, rows)


_CONDITIONS: list[tuple[str, Callable[[int, int, int | None], bool]]] = [
    ("v > 2", lambda i, k, v: v is not None and v > 2),
    ("v is null or v < 5", lambda i, k, v: v is None or v < 5),
    ("k <> 1", lambda i, k, v: k != 1),
    ("id % 2 = 0", lambda i, k, v: i % 2 == 0),
]


def _known(values: list[int | None]) -> list[int]:
    return [value for value in values if value is not None]


_AGGREGATES: dict[str, tuple[Callable[[], Any], Callable[[list[int | None]], int | None]]] = {
    "count": (lambda: hw.count("v"), lambda values: len(_known(values))),
    "sum": (lambda: hw.sum("v"), lambda values: sum(_known(values)) if _known(values) else None),
    "min": (lambda: hw.min("v"), lambda values: min(_known(values), default=None)),
    "max": (lambda: hw.max("v"), lambda values: max(_known(values), default=None)),
    "distinct": (lambda: hw.count_distinct("v"), lambda values: len(set(_known(values)))),
    "collected": (lambda: hw.collect_list("v"), lambda values: len(_known(values))),
}


def held(changes: list[Any], key: tuple[str, ...]) -> Counter[Any]:
    """The rows that a changelog leaves, of rows with `row_kind` or of rows that are only added."""
    if not changes or "row_kind" not in changes[0]._fields:
        return Counter(tuple(row) for row in changes)
    if key:
        return Counter(reduce(_put(key), changes, dict[Any, Any]()).values())
    table: Counter[Any] = Counter()
    for row in changes:
        what = tuple(row)[:-1]
        table[what] += 1 if row.row_kind in ("+I", "+U") else -1
        assert table[what] >= 0, f"{row} takes back a row that is not there"
    return +table


def _put(key: tuple[str, ...]) -> Callable[[dict[Any, Any], Any], dict[Any, Any]]:
    def put(table: dict[Any, Any], row: Any) -> dict[Any, Any]:
        place = tuple(getattr(row, name) for name in key)
        if row.row_kind in ("+I", "+U"):
            table[place] = tuple(row)[:-1]
        else:
            table.pop(place, None)
        return table

    return put
