"""Joins of keyed streams: what they need, and the steps they become."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headwater.durations import duration_ms
from headwater.errors import GraphError
from headwater.functions import OutputTag
from headwater.graph.nodes import IntervalJoinNode
from headwater.streams.pairs import add_pair, check_keyed, check_tag, joined

if TYPE_CHECKING:
    from headwater.streams.stream import Step, Stream


def add_interval_join(
    left: Stream,
    right: Stream,
    *,
    between: Any,
    inclusive: tuple[bool, bool],
    tags: Mapping[str, OutputTag | None],
    suffix: str,
    name: str,
) -> Step:
    """Two streams joined by key and by how far apart their times are."""
    left._check_meets(right, name)
    check_keyed(left, right, name)
    if not isinstance(between, tuple | list) or len(between) != 2:
        raise GraphError.bad_argument(name, "needs two bounds", between, "write between=('-5 s', '10 s')")
    lower, upper = (duration_ms(bound, what=f"a bound of {name}", negative=True) for bound in between)
    lower, upper = lower + (not inclusive[0]), upper - (not inclusive[1])
    if lower > upper:
        raise GraphError.bad_argument(
            name, "needs a lower bound that is not above the upper one", between, "swap or widen them"
        )
    for what, tag in tags.items():
        check_tag(tag, left if what.endswith("left") else right, name, what)
    given = [tag.name for tag in tags.values() if tag is not None]
    if len(given) != len(set(given)):
        raise GraphError.bad_argument(name, "needs side outputs of different names", given, "rename one")
    schema, shown = joined(left, right, suffix, name)
    return add_pair(
        left,
        right,
        IntervalJoinNode,
        name,
        schema,
        key=left.key,
        right_key=right.key,
        left_schema=left.schema,
        right_schema=right.schema,
        right_columns=shown,
        lower_ms=lower,
        upper_ms=upper,
        **tags,
    )
