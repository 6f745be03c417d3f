"""Columns that nobody reads are left out before rows move and are kept: state holds what a query needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from headwater.sql.relations import (
    Aggregate,
    Deduplicate,
    Distinct,
    Filter,
    Functions,
    IntervalJoin,
    Join,
    LookupJoin,
    Numbered,
    Over,
    Project,
    Rank,
    RegularJoin,
    Relation,
    Retimed,
    Scan,
    SortByTime,
    TemporalJoin,
    Union,
    Unnest,
    Values,
    View,
    Window,
    WindowJoin,
    WindowTable,
    only,
)

Needed = set[str]
_KEEP_NOTHING = (Filter, Functions, Project, Scan, Union, Unnest, Values, View, WindowTable)


def prune_columns(relation: Relation) -> Relation:
    """The same rows, of all columns, made of no more than that takes."""
    return only(_pruned(relation, set(relation.names)), relation.names)


def _pruned(relation: Relation, needed: Needed) -> Relation:
    """A relation that has the needed columns, and perhaps others: those that it cannot do without."""
    return _PRUNERS[type(relation)](relation, needed)


def _exactly(relation: Relation, needed: Iterable[str]) -> Relation:
    """A relation with these columns alone, in its own order."""
    wanted = set(needed) or {relation.names[0]}
    return only(_pruned(relation, wanted), [name for name in relation.names if name in wanted])


def _as_it_is(relation: Relation, _: Needed) -> Relation:
    return relation


def _view(relation: View, needed: Needed) -> Relation:
    """What a view keeps is kept once, whoever reads it: with all its columns, so that no reader changes it."""
    if _keeps_something(relation.input):
        needed = set(relation.names)
    return replace(relation, input=_pruned(relation.input, needed))


def _keeps_something(relation: Relation) -> bool:
    return not isinstance(relation, _KEEP_NOTHING) or any(map(_keeps_something, relation.inputs))


def _project(relation: Project, needed: Needed) -> Relation:
    items = tuple((name, scalar) for name, scalar in relation.items if name in needed) or relation.items[:1]
    used = {column for _, scalar in items for column in scalar.columns}
    return Project(_pruned(relation.input, used), items)


def _filter(relation: Filter, needed: Needed) -> Relation:
    return replace(relation, input=_pruned(relation.input, needed | relation.condition.columns))


def _distinct(relation: Distinct, _: Needed) -> Relation:
    return replace(relation, input=_exactly(relation.input, relation.names))


def _retimed(relation: Retimed, needed: Needed) -> Relation:
    return replace(relation, input=_pruned(relation.input, needed | {relation.time}))


def _window_columns(window: Window | None) -> Needed:
    return set() if window is None else {name for name in (window.start, window.end, window.bound) if name is not None}


def _window_table(relation: WindowTable, needed: Needed) -> Relation:
    own = _window_columns(relation.made)
    return replace(
        relation, input=_exactly(relation.input, (needed - own) | {relation.made.time, *relation.made.partition})
    )


def _aggregate(relation: Aggregate, _: Needed) -> Relation:
    used = {*relation.keys, *(column for call in relation.calls for column in call.kernel.columns)}
    window = relation.windowed
    if window is not None:
        used |= {name for name in (*_window_columns(window), window.time) if name in relation.input.by_name}
    if relation.input.row_time is not None:
        used.add(relation.input.row_time)
    return replace(relation, input=_pruned(relation.input, used))


def _over(relation: Over, needed: Needed) -> Relation:
    used = {relation.time, *relation.partition}
    for call in relation.calls:
        kernel = call.kernel
        used |= {name for name in (getattr(kernel, "column", None), getattr(kernel, "default", None)) if name}
        used |= set(getattr(kernel, "columns", ()))
    made = {call.name for call in relation.calls}
    return replace(relation, input=_exactly(relation.input, (needed - made) | used))


def _union(relation: Union, needed: Needed) -> Relation:
    places = [at for at, name in enumerate(relation.names) if name in needed] or [0]
    parts = []
    for part in relation.parts:
        names = [part.names[at] for at in places]
        parts.append(only(_pruned(part, set(names)), names))
    return Union(tuple(parts))


def _functions(relation: Functions, needed: Needed) -> Relation:
    calls = tuple(call for call in relation.calls if call.name in needed)
    made = {call.name for call in relation.calls}
    used = (needed - made) | {argument for call in calls for argument in call.arguments}
    if not calls:
        return _pruned(relation.input, used)
    return replace(relation, input=_exactly(relation.input, used), calls=calls)


def _unnest(relation: Unnest, needed: Needed) -> Relation:
    made = {field.name for field in relation.made}
    if not relation.of.columns:
        return relation
    return replace(relation, input=_pruned(relation.input, (needed - made) | relation.of.columns))


def _rank(relation: Rank, needed: Needed) -> Relation:
    used = {*relation.partition, *(order.column for order in relation.order), *_window_columns(relation.windowed)}
    number = relation.number if relation.number in needed else None
    kept = {name for name in (needed | used) if name in relation.input.by_name}
    if relation.windowed is not None and relation.input.row_time is not None:
        kept.add(relation.input.row_time)
    return replace(relation, input=_exactly(relation.input, kept), number=number)


def _numbered(relation: Numbered, needed: Needed) -> Relation:
    used = {*relation.partition, *(order.column for order in relation.order)}
    return replace(relation, input=_exactly(relation.input, (needed - {relation.number}) | used))


def _deduplicate(relation: Deduplicate, needed: Needed) -> Relation:
    used = {*relation.keys, relation.time, *_window_columns(relation.windowed)}
    kept = {name for name in (needed | used) if name in relation.input.by_name}
    return replace(relation, input=_exactly(relation.input, kept))


def _sorted(relation: SortByTime, needed: Needed) -> Relation:
    time = relation.row_time
    return replace(relation, input=_exactly(relation.input, needed | ({time} if time else set())))


def _join(relation: Join, needed: Needed) -> Relation:
    used = needed | (set() if relation.rest is None else relation.rest.columns)
    left = {name for name in used if name in relation.left.by_name} | {one for one, _ in relation.equal}
    own = {shown: name for name, shown in relation.shown_right.items()}
    right = {own[name] for name in used if name in own} | {other for _, other in relation.equal}
    left |= _times(relation, 0)
    right |= _times(relation, 1)
    pruned_left, pruned_right = _exactly(relation.left, left), _exactly(relation.right, right)
    names = tuple(relation.shown_right[name] for name in pruned_right.names)
    return replace(relation, left=pruned_left, right=pruned_right, right_names=names)


def _times(relation: Join, side: int) -> Needed:
    """The columns that say when rows of a side meet others."""
    if isinstance(relation, IntervalJoin):
        return {(relation.left_time, relation.right_time)[side]}
    if isinstance(relation, WindowJoin):
        return _window_columns((relation.left_window, relation.right_window)[side])
    return set()


def _looked_up(relation: LookupJoin, needed: Needed) -> Relation:
    """Of the table what is shown or compared; the time of the look-up is that of the epoch."""
    used = needed | (set() if relation.rest is None else relation.rest.columns)
    left = {name for name in used if name in relation.left.by_name} | {one for one, _ in relation.equal}
    keys = {other for _, other in relation.equal}
    assert isinstance(relation.right, Scan)
    kept = [
        (field, shown)
        for field, shown in zip(relation.right.fields, relation.right_names, strict=True)
        if shown in used or field.name in keys
    ]
    return replace(
        relation,
        left=_exactly(relation.left, left),
        right=replace(relation.right, seen=tuple(field for field, _ in kept)),
        right_names=tuple(shown for _, shown in kept),
    )


_PRUNERS: dict[type[Relation], Callable[[Any, Needed], Relation]] = {
    Aggregate: _aggregate,
    Deduplicate: _deduplicate,
    Distinct: _distinct,
    Filter: _filter,
    Functions: _functions,
    IntervalJoin: _join,
    LookupJoin: _looked_up,
    Numbered: _numbered,
    Over: _over,
    Project: _project,
    Rank: _rank,
    RegularJoin: _join,
    Retimed: _retimed,
    Scan: _as_it_is,
    SortByTime: _sorted,
    TemporalJoin: _as_it_is,
    Union: _union,
    Unnest: _unnest,
    Values: _as_it_is,
    View: _view,
    WindowJoin: _join,
    WindowTable: _window_table,
}
