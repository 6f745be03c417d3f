"""Two keyed inputs whose rows are put side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import pyarrow as pa

from headwater.data.functions.terms import Term
from headwater.data.row_kinds import ROW_KIND
from headwater.data.schema import Schema
from headwater.durations import Duration, duration_ms
from headwater.errors import GraphError
from headwater.functions import EVENT, PROCESSING, OutputTag
from headwater.graph.changelog import ANY, APPEND, APPEND_ONLY, APPEND_OR_RETRACT, Changelog, ChangelogMode, Modes
from headwater.graph.checks import check_both_keyed, check_has_watermarks, check_how, check_tag, checked_ttl
from headwater.graph.connected import pair_edges
from headwater.graph.edges import LEFT, Key
from headwater.graph.flow import Flow
from headwater.graph.nodes.conditions import condition_query
from headwater.graph.nodes.core import Node, lasts, ttls

_CHANGES = Changelog(ChangelogMode.RETRACT, keeps_times=False)
"""What a join tells: a pair that goes has the time of the row that takes it away."""
SUFFIX = "_right"
"""What a right column is called by, beside its own name, when that is taken."""


@dataclass(frozen=True, kw_only=True)
class JoinNode(Node):
    """Two keyed inputs whose rows are put side by side: the left columns, then those of the right in `right_columns`."""

    is_stateful: ClassVar[bool] = True
    uses_backend: ClassVar[bool] = True
    waits_by_side: ClassVar[bool] = True

    key: Key
    right_key: Key
    left_schema: Schema
    right_schema: Schema
    right_columns: tuple[str, ...]

    def kept(self) -> dict[str, Any]:
        return {
            "key": self.key.typed(),
            "right key": self.right_key.describe(),
            "left rows": self.left_schema.ddl(),
            "right rows": self.right_schema.ddl(),
        }


@dataclass(frozen=True, kw_only=True)
class IntervalJoinNode(JoinNode):
    """Pairs of rows with `left time + lower <= right time <= left time + upper`."""

    operation: ClassVar[str] = "interval_join"
    without_event_time: ClassVar[str] = "join by time='processing'"

    time: str
    """Whose time: that of the rows, or that of the epochs they come in."""
    lower_ms: int
    upper_ms: int
    late_left: OutputTag | None
    late_right: OutputTag | None
    unmatched_left: OutputTag | None
    unmatched_right: OutputTag | None
    condition: str | None = None
    """A query of DuckDB over pairs: they are those of which it keeps something."""

    @classmethod
    def of(  # noqa: PLR0913  each side has its own outputs
        cls,
        left: Flow,
        right: Flow,
        *,
        between: tuple[Duration, Duration],
        time: str = EVENT,
        lower_inclusive: bool = True,
        upper_inclusive: bool = True,
        late_left: OutputTag | None = None,
        late_right: OutputTag | None = None,
        unmatched_left: OutputTag | None = None,
        unmatched_right: OutputTag | None = None,
        condition: Term | None = None,
        suffix: str = SUFFIX,
        name: str = "interval_join",
    ) -> Self:
        check_both_keyed(left, right, name)
        if time not in (EVENT, PROCESSING):
            raise GraphError.bad_argument(
                name, f"joins by time={EVENT!r} or {PROCESSING!r}", time, "choose one of them"
            )
        if time == EVENT:
            check_has_watermarks(left, right, name)
        elif late_left is not None or late_right is not None:
            raise GraphError.bad_argument(
                name, f"knows no late rows by time={PROCESSING!r}", "late_left or late_right", "leave them out"
            )
        lower, upper = _bounds(between, name)
        lower, upper = lower + (not lower_inclusive), upper - (not upper_inclusive)
        if lower > upper:
            raise GraphError.bad_argument(
                name, "needs a lower bound that is not above the upper one", between, "swap or widen them"
            )
        tags: dict[str, Any] = {
            "late_left": late_left,
            "late_right": late_right,
            "unmatched_left": unmatched_left,
            "unmatched_right": unmatched_right,
        }
        for what, tag in tags.items():
            check_tag(tag, (left if what.endswith("left") else right).schema, name, what)
        given = [tag.name for tag in tags.values() if tag is not None]
        if len(given) != len(set(given)):
            raise GraphError.bad_argument(name, "needs side outputs of different names", given, "rename one")
        schema, shown = side_by_side(left, right, suffix, name)
        settings = {**tags, **join_settings(left, right, name=name, shown=shown)}
        settings["condition"] = condition_query(condition)
        return cls(schema=schema, time=time, lower_ms=lower, upper_ms=upper, **settings)

    @property
    def needs_times(self) -> bool:
        return self.time == EVENT

    def kept(self) -> dict[str, Any]:
        marks = self.unmatched_left is not None or self.unmatched_right is not None
        words = {**super().kept(), "between": [self.lower_ms, self.upper_ms]}
        words |= {"time": self.time} if self.time == PROCESSING else {}
        words |= {"condition": self.condition} if marks and self.condition is not None else {}
        return {**words, "tells unmatched rows": True} if marks else words


@dataclass(frozen=True, kw_only=True)
class RegularJoinNode(JoinNode):
    """Pairs of all rows so far, and padded rows where `how` asks for them, as a changelog."""

    operation: ClassVar[str] = "regular_join"
    passes_times: ClassVar[bool] = True
    taken: ClassVar[Modes] = APPEND_OR_RETRACT

    how: str
    ttls_ms: tuple[int | None, int | None]
    """How long rows of each side are kept; None is for ever."""
    left_changes: bool
    """Whether left rows may be taken back."""
    right_changes: bool

    @classmethod
    def of(
        cls,
        left: Flow,
        right: Flow,
        *,
        how: str = "inner",
        ttl: Duration | tuple[Duration | None, Duration | None] | None = None,
        suffix: str = SUFFIX,
        name: str = "join_regular",
    ) -> Self:
        """`ttl` is that of both sides, or of the left one and of the right one."""
        check_both_keyed(left, right, name)
        check_how(how, ("inner", "left", "right", "full"), name)
        left_ttl, right_ttl = ttl if isinstance(ttl, tuple) else (ttl, ttl)
        for flow in (left, right):
            _check_no_kinds(flow, name)
        changes = [not flow.changelog.is_append_only for flow in (left, right)]
        schema, shown = side_by_side(left, right, suffix, name)
        return cls(
            schema=padded(schema, len(left.schema.names), how),
            changelog=_CHANGES if any(changes) or how != "inner" else APPEND_ONLY,
            how=how,
            ttls_ms=(checked_ttl(left_ttl, name), checked_ttl(right_ttl, name)),
            left_changes=changes[0],
            right_changes=changes[1],
            **join_settings(left, right, name=name, shown=shown),
        )

    def lasting(self, ttl_ms: int) -> Self:
        left, right = self.ttls_ms
        return replace(self, ttls_ms=(left or ttl_ms, right or ttl_ms))

    def kept(self) -> dict[str, Any]:
        left, right = (lasts(ttl_ms, "it came") for ttl_ms in self.ttls_ms)
        return {**super().kept(), "how": self.how, **ttls({"left": left, "right": right})}

    @property
    def grows(self) -> str | None:
        left, right = (ttl_ms is None for ttl_ms in self.ttls_ms)
        if left and right:
            return "all rows of its inputs"
        return f"all rows of its {'left' if left else 'right'} input" if left or right else None


@dataclass(frozen=True, kw_only=True)
class TemporalJoinNode(JoinNode):
    """Each left row with the right row of its key that was the latest at the left row's time."""

    operation: ClassVar[str] = "temporal_join"
    without_event_time: ClassVar[str] = "take event time from a column with .assign_watermarks(...)"

    how: str
    late: OutputTag | None
    ttl_ms: int | None = None
    """After how long without rows on either side, in processing time, the versions of a key are forgotten."""

    @property
    def needs_times(self) -> bool:
        return True

    @classmethod
    def of(
        cls,
        rows: Flow,
        versions: Flow,
        *,
        how: str = "inner",
        late: OutputTag | None = None,
        ttl: Duration | None = None,
        suffix: str = SUFFIX,
        name: str = "temporal_join",
    ) -> Self:
        check_both_keyed(rows, versions, name)
        check_has_watermarks(rows, versions, name)
        check_how(how, ("inner", "left"), name)
        check_tag(late, rows.schema, name, "late")
        _check_no_kinds(versions, name)
        if versions.changelog.key and {*versions.changelog.key} != {*versions.key.columns}:
            raise GraphError.bad_argument(
                name,
                "needs one version at a time of the key that it joins by",
                f"a changelog by {', '.join(versions.changelog.key)}, joined by {versions.key.describe()}",
                "join by the changelog's key",
            )
        schema, shown = side_by_side(rows, versions, suffix, name)
        settings = join_settings(rows, versions, name=name, shown=shown)
        schema = padded(schema, len(rows.schema.names), how)
        return cls(schema=schema, how=how, late=late, ttl_ms=checked_ttl(ttl, name), **settings)

    def lasting(self, ttl_ms: int) -> Self:
        return replace(self, ttl_ms=self.ttl_ms or ttl_ms)

    def reads_versions(self, side: int) -> bool:
        return side != LEFT

    def takes(self, side: int) -> Modes:
        """Versions may change."""
        return APPEND if side == LEFT else ANY

    def kept(self) -> dict[str, Any]:
        until = lasts(self.ttl_ms, "the last row of its key on either side")
        return {**super().kept(), "how": self.how, **ttls({"versions": until})}


def side_by_side(left: Flow, right: Flow, suffix: str, step: str) -> tuple[Schema, tuple[str, ...]]:
    """The columns of both sides, and which of the right ones they are.

    Key columns with the same names on both sides are shown once. A right column whose name is taken gets the suffix.
    """
    once = set(right.key.columns) if left.key.columns == right.key.columns else set()
    fields = list(left.schema.arrow)
    shown = tuple(name for name in right.schema.names if name not in once)
    for name in shown:
        field = right.schema.field(name)
        taken = {other.name for other in fields}
        fields.append(field.with_name(name + suffix) if name in taken else field)
    names = [field.name for field in fields]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise GraphError.bad_argument(
            step,
            "gives the columns of both sides, which need names of their own",
            ", ".join(twice),
            "give another suffix",
        )
    return Schema(pa.schema(fields)), shown


def join_settings(left: Flow, right: Flow, *, name: str, shown: tuple[str, ...]) -> dict[str, Any]:
    """What all joins have: these of the right columns are shown, and whole rows are kept."""
    return {
        "name": name,
        "inputs": pair_edges(left, right),
        "key": left.key,
        "right_key": right.key,
        "left_schema": left.schema,
        "right_schema": right.schema,
        "right_columns": shown,
    }


def _bounds(between: Any, step: str) -> tuple[int, int]:
    if not isinstance(between, tuple | list) or len(between) != 2:
        raise GraphError.bad_argument(step, "needs two bounds", between, "write between=('-5 s', '10 s')")
    lower, upper = (duration_ms(bound, what=f"a bound of {step}", negative=True) for bound in between)
    return lower, upper


def padded(schema: Schema, left_columns: int, how: str) -> Schema:
    """The columns of both sides; those of a side that a row may lack can be null."""
    lacks_left, lacks_right = how in ("right", "full"), how in ("left", "full")
    may_lack = [lacks_left] * left_columns + [lacks_right] * (len(schema.names) - left_columns)
    fields = [field.with_nullable(field.nullable or lacks) for field, lacks in zip(schema.arrow, may_lack, strict=True)]
    return Schema(pa.schema(fields))


def _check_no_kinds(flow: Flow, step: str) -> None:
    """A changelog is what a stream says it is; a column of that name alone is most likely a mistake."""
    if flow.changelog.is_append_only and ROW_KIND in flow.schema.names:
        raise GraphError.bad_argument(
            step,
            f"does not read a column {ROW_KIND!r} as what rows do",
            str(flow.schema),
            "call .as_changelog() on the stream, or rename the column with select",
        )
