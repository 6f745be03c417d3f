"""What each step keeps, per what, until when, and how that can be bounded: told before a job starts.

One row of the table for each kind of step that keeps something. `explain_state` shows it, and so does SQL's EXPLAIN STATE.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from headwater.aggregates.called import CalledAggregate
from headwater.data.schema import Schema
from headwater.durations import duration_text
from headwater.functions import EVENT, has_timers
from headwater.graph.edges import Key
from headwater.graph.nodes import Node
from headwater.words import TimeDomain

NEVER: Final = "never"
TIMERS: Final = "@timers"
"""What the tables of timers begin with, one for each kind of time."""


@dataclass(frozen=True)
class Holding:
    """One thing that a step keeps."""

    what: str
    per: str
    until: str
    """When it is removed; `NEVER` for what grows as long as the job runs."""
    entry_bytes: int = 0
    """What one takes, as far as types tell; texts and lists are counted with 16 bytes."""
    ways_out: tuple[str, ...] = ()
    """How it can be bounded, where it is not, or where nobody knows."""
    lasts_ms: int | None = None
    """For how long an entry is there, where that is known: after so long a state of steady input has reached its size."""
    is_refreshed: bool = False
    """Whether an entry lasts longer when it is written again, so that entries may become more however short they last."""
    clock: TimeDomain = "processing"
    """Of which time that is."""
    state: str | None = None
    """The name of the state, where a function declares it; or that of a function's timers."""

    @property
    def is_bounded(self) -> bool:
        """Whether something is known to take it away, or left to a function."""
        return self.until != NEVER

    @property
    def is_left_to_function(self) -> bool:
        """Whether it goes when a function says so, and nobody else knows when."""
        return self.state is not None and self.lasts_ms is None

    def is_of(self, table: str) -> bool:
        """Whether a table of the step has it, where it is a function's."""
        return table == self.state or (self.state == TIMERS and table.startswith(f"{TIMERS}."))


def held_in(keeps: Sequence[Holding], table: str) -> list[Holding]:
    """What a table of a step has, of all that the step keeps: what a function declares under this name, or else the rest."""
    return [one for one in keeps if one.is_of(table)] or [one for one in keeps if one.state is None]


def holdings(node: Node) -> tuple[Holding, ...]:
    """What a step keeps; nothing, of one without state."""
    return HOLDINGS[node.operation](node) if node.is_stateful else ()


def bytes_of(dtype: pa.DataType) -> int:
    """What a value of a type takes, about."""
    if pa.types.is_struct(dtype):
        return sum(bytes_of(field.type) for field in dtype)
    try:
        return max(1, int(dtype.bit_width) // 8)
    except ValueError:  # of no fixed width
        return 16


def _row_bytes(rows: Schema) -> int:
    return sum(bytes_of(field.type) for field in rows.arrow)


def _per(key: Key) -> str:
    return "all rows" if key.is_nothing else key.describe()


def _for(ttl_ms: int | None, *ways: str, since: str = "it came") -> dict[str, Any]:
    if ttl_ms is None:
        return {"until": NEVER, "ways_out": ways}
    until = f"{duration_text(ttl_ms)} after {since}"
    return {"until": until, "lasts_ms": ttl_ms, "ways_out": _TTL_WAYS, "is_refreshed": since.startswith(_LAST_ROW)}


_LAST_ROW = "the last row of its key"
_TTL_WAYS = ("a shorter ttl",)
_WINDOW = "group by a window, whose state goes with it"
_IDLE = "a ttl: SET 'table.exec.state.ttl' in SQL, state_ttl= of the environment"
_JOB_WIDE = "a ttl: state_ttl= of the environment"


def _running(node: Any) -> tuple[Holding, ...]:
    functions = [_function(aggregate, takes_back=node.takes_back) for aggregate in node.aggregates.values()]
    size = bytes_of(node.key.type) + 16 * max(1, len(functions))
    what = ", ".join(dict.fromkeys(functions)) or "that the key was there"
    until = _for(node.ttl_ms, _WINDOW, _IDLE, since=_LAST_ROW)
    return (Holding(what, _per(node.key), entry_bytes=size, **until),)


def _function(aggregate: Any, *, takes_back: bool) -> str:
    column = aggregate.column
    if isinstance(aggregate, CalledAggregate):
        return f"one accumulator of {aggregate.function}"
    if aggregate.function in ("count_distinct", "collect_set"):
        return f"each different value of {column}"
    if aggregate.function == "collect_list":
        return f"every value of {column}"
    if takes_back and aggregate.facts.takes_back == "by counted values":
        return f"each different value of {column} with its count"
    return f"one {aggregate.function}" + ("" if column is None else f" of {column}")


def _window(node: Any) -> tuple[Holding, ...]:
    per = f"{_per(node.key)} and window ({node.assigner.describe()})"
    if node.aggregates and node.process is None:
        functions = [_function(aggregate, takes_back=node.takes_back) for aggregate in node.aggregates.values()]
        what, size = ", ".join(dict.fromkeys(functions)), 16 * len(functions) + bytes_of(node.key.type)
    elif node.folded is not None:
        what, size = "one accumulator", bytes_of(node.accumulator) if node.accumulator is not None else 64
    else:
        what, size = "every row", _row_bytes(node.input_schema)
    held = Holding(what, per, _window_end(node), size, **_window_lasts(node))
    return (held, *(_beside_windows(state, node, per) for state in node.states))


def _beside_windows(state: Any, node: Any, per_window: str) -> Holding:
    """What the function of a window keeps of its own: of the window, or of the key for all its windows."""
    if not state.is_per_window:
        return _declared(state, _per(node.key), ("keep it with hw.per_window(...), so that it goes with its window",))
    known = _declared(state, per_window, ())
    return replace(known, until=_window_end(node), state=None, **_window_lasts(node))


def _window_lasts(node: Any) -> dict[str, Any]:
    """How long a row is there: as long as its window and what may be late. A session is as long as it has rows."""
    size_ms = getattr(getattr(node.assigner, "inner", node.assigner), "size_ms", None)
    return {} if size_ms is None else {"lasts_ms": size_ms + node.lateness_ms, "clock": node.assigner.domain}


def _session(node: Any) -> tuple[Holding, ...]:
    per = f"{_per(node.key)} and session (gap {duration_text(node.gap_ms)})"
    until = f"{'the watermark' if node.time == EVENT else 'the clock'} passes the end of the session"
    if not node.folds:
        size = sum(bytes_of(node.rows.field(name).type) for name in node.kept_columns)
        return (Holding(f"{', '.join(node.kept_columns)} of every row", per, until, size),)
    functions = [_function(aggregate, takes_back=False) for aggregate in node.aggregates.values()]
    size = 16 * len(functions) + bytes_of(node.key.type)
    return (Holding(", ".join(dict.fromkeys(functions)), per, until, size),)


def _window_end(node: Any) -> str:
    if not node.assigner.is_bounded:
        return "its trigger purges it"
    clock = "the watermark" if node.assigner.domain == EVENT else "the clock"
    late = f" and {duration_text(node.lateness_ms)} more" if node.lateness_ms else ""
    return f"{clock} passes the end of the window{late}"


def _interval_join(node: Any) -> tuple[Holding, ...]:
    clock = "the watermark" if node.time == EVENT else "the clock"
    left_ms, right_ms = max(0, node.upper_ms), max(0, -node.lower_ms)
    return (
        Holding(
            "left rows",
            _per(node.key),
            f"{clock} passes their time by {duration_text(left_ms)}",
            _row_bytes(node.left_schema),
            lasts_ms=left_ms,
            clock=node.time,
        ),
        Holding(
            "right rows",
            _per(node.right_key),
            f"{clock} passes their time by {duration_text(right_ms)}",
            _row_bytes(node.right_schema),
            lasts_ms=right_ms,
            clock=node.time,
        ),
    )


_JOIN_WAYS = (
    "bound the time between both rows in the condition (an interval join)",
    "join in windows",
    "join with FOR SYSTEM_TIME AS OF, if one side is versions of a key",
    "a ttl: STATE_TTL in SQL, ttl= in Python",
)


def _regular_join(node: Any) -> tuple[Holding, ...]:
    left, right = (_for(ttl_ms, *_JOIN_WAYS) for ttl_ms in node.ttls_ms)
    return (
        Holding("all left rows", _per(node.key), entry_bytes=_row_bytes(node.left_schema), **left),
        Holding("all right rows", _per(node.right_key), entry_bytes=_row_bytes(node.right_schema), **right),
    )


_VERSION_WAYS = (
    "a ttl: SET 'table.exec.state.ttl' in SQL, ttl= in Python",
    "delete keys that are not needed any more in the versioned table",
)


def _temporal_join(node: Any) -> tuple[Holding, ...]:
    return (
        Holding("left rows", _per(node.key), "the watermark passes their time", _row_bytes(node.left_schema)),
        Holding(
            "the last version, and those since the watermark",
            _per(node.right_key),
            entry_bytes=_row_bytes(node.right_schema),
            **_for(node.ttl_ms, *_VERSION_WAYS, since="the last row of its key on either side"),
        ),
    )


def _window_join(node: Any) -> tuple[Holding, ...]:
    until, lasts = _window_end_of_join(node), _window_lasts(node)
    per = f"and window ({node.assigner.describe()})"
    return (
        Holding("left rows", f"{_per(node.key)} {per}", until, _row_bytes(node.left_schema), **lasts),
        Holding("right rows", f"{_per(node.right_key)} {per}", until, _row_bytes(node.right_schema), **lasts),
    )


def _window_end_of_join(node: Any) -> str:
    late = f" and {duration_text(node.lateness_ms)} more" if node.lateness_ms else ""
    return f"the watermark passes the end of the window{late}"


def _deduplicate(node: Any) -> tuple[Holding, ...]:
    ways = ("a ttl: deduplicate(by, ttl=)", "deduplicate in windows")
    return (
        Holding(
            "that the key was seen", _per(node.key), entry_bytes=bytes_of(node.key.type) + 8, **_for(node.ttl_ms, *ways)
        ),
    )


def _distinct(node: Any) -> tuple[Holding, ...]:
    since = "its first row" if node.since_first else _LAST_ROW
    until = _for(node.ttl_ms, "deduplicate in windows", since=since)
    return (Holding("that the key was seen", _per(node.key), entry_bytes=bytes_of(node.key.type) + 8, **until),)


def _keep(node: Any) -> tuple[Holding, ...]:
    is_first = node.operation == "keep_first"
    since = "it was given" if is_first else _LAST_ROW
    until = _for(node.ttl_ms, "deduplicate in windows", _IDLE, since=since)
    what = "the first row until it is given, then that it was" if is_first else "the last row"
    return (Holding(what, _per(node.key), entry_bytes=_row_bytes(node.schema), **until),)


def _top_n(node: Any) -> tuple[Holding, ...]:
    what = "all rows" if node.takes_back else "the first rows of the order"
    ways = (
        "rank in windows",
        *(("rank rows that are only added, of which the first are enough",) if node.takes_back else ()),
    )
    return (Holding(what, _per(node.key), entry_bytes=_row_bytes(node.rows), **_for(node.ttl_ms, *ways)),)


def _window_top_n(node: Any) -> tuple[Holding, ...]:
    return (Holding("the first rows of the order", _per(node.key), "the watermark passes the end of the window", 0),)


def _over(node: Any) -> tuple[Holding, ...]:
    clock = "the watermark" if node.time == EVENT else "the clock"
    found = []
    if node.time == EVENT:
        found.append(Holding("rows", _per(node.key), "the watermark passes their time", _row_bytes(node.rows)))
    preceding = node.frame.preceding
    if preceding is None:
        until = _for(node.ttl_ms, "bound the frame: RANGE BETWEEN … PRECEDING", _IDLE, since=_LAST_ROW)
        size = 16 * len(node.functions)
        found.append(Holding("one accumulator for each function", _per(node.key), entry_bytes=size, **until))
    elif node.frame.kind == "rows":
        until = _for(node.ttl_ms, "bound the frame by RANGE", _IDLE, since=_LAST_ROW)
        what = f"the last {preceding} rows"
        found.append(Holding(what, _per(node.key), entry_bytes=_row_bytes(node.rows), **until))
    else:
        stays = preceding * 3 // 2 if node.time == EVENT else preceding  # as rows that come late have frames, too
        passed = f"{clock} passes their time by {duration_text(stays)}"
        found.append(
            Holding("rows of the frame", _per(node.key), passed, _row_bytes(node.rows), lasts_ms=stays, clock=node.time)
        )
    return tuple(found)


def _normalize(node: Any) -> tuple[Holding, ...]:
    ways = ("write to what takes upserts by this key", "delete keys that are not needed any more")
    what = "the row that is there (without a ttl, as the row that goes is to be told)"
    return (Holding(what, _per(node.key), NEVER, _row_bytes(node.schema), ways),)


def _reduce(node: Any) -> tuple[Holding, ...]:
    until = _for(node.ttl_ms, _WINDOW, _JOB_WIDE, since=_LAST_ROW)
    return (Holding("one row", _per(node.key), entry_bytes=_row_bytes(node.schema), **until),)


def _process(node: Any) -> tuple[Holding, ...]:
    key = getattr(node, "key", None)
    per = "subtask" if key is None else _per(key)
    found = [_declared(state, per, () if key is None else _TTL_OF_STATE) for state in node.states]
    found += [_declared(state, "subtask", ()) for state in getattr(node, "broadcast_states", ())]
    if key is not None and not key.is_nothing and has_timers(node.function):
        size = bytes_of(key.type) + 16
        found.append(Holding("timers", per, "they fire, when your function said", size, _TIMER_WAYS, state=TIMERS))
    return tuple(found)


_CLEAR_IT = "clear it: when a row says that it is done with, or in a timer"
_TTL_OF_STATE = ("a ttl: ttl=hw.ttl(...) of the state, state_ttl= of the environment",)
_TIMER_WAYS = ("set timers for what is due soon, and delete those that are not needed any more",)


def _declared(state: Any, per: str, ways: tuple[str, ...]) -> Holding:
    size, what = sum(bytes_of(dtype) for _, dtype in state.columns()), f"{state.name} ({state.kind})"
    ttl = getattr(state, "ttl", None)
    if ttl is None:
        return Holding(what, per, "your function removes it", size, (_CLEAR_IT, *ways), state=state.name)
    until, clock = ttl.describe(), ttl.clock
    return Holding(what, per, until, size, _TTL_WAYS, ttl.ms, is_refreshed=True, clock=clock, state=state.name)


HOLDINGS: Final[Mapping[str, Callable[[Any], tuple[Holding, ...]]]] = {
    "broadcast_process": _process,
    "co_process": _process,
    "deduplicate": _deduplicate,
    "distinct": _distinct,
    "interval_join": _interval_join,
    "keep_first": _keep,
    "keep_last": _keep,
    "keyed_process": _process,
    "normalize": _normalize,
    "over_aggregate": _over,
    "reduce": _reduce,
    "regular_join": _regular_join,
    "running": _running,
    "session": _session,
    "stateful_process": _process,
    "temporal_join": _temporal_join,
    "top_n": _top_n,
    "window": _window,
    "window_join": _window_join,
    "window_top_n": _window_top_n,
}
"""By operation; a house test sees to it that none is missing."""
