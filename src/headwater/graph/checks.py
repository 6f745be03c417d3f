"""What steps ask of their inputs and arguments, where several ask for the same."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from headwater.data.schema import Schema
from headwater.data.types import is_time_type
from headwater.descriptors import StateDeclaration
from headwater.durations import Duration, duration_ms
from headwater.errors import GraphError
from headwater.functions import EVENT, OutputTag

if TYPE_CHECKING:
    from headwater.graph.flow import Flow


def checked_ttl(ttl: Duration | None, step: str) -> int | None:
    """After how many milliseconds a step forgets, if it does."""
    ttl_ms = None if ttl is None else duration_ms(ttl, what=f"the ttl of step {step!r}")
    if ttl_ms == 0:
        raise GraphError.bad_argument(step, "needs a ttl of more than nothing", ttl, "leave it out for ever")
    return ttl_ms


def check_callable(function: Any, step: str) -> None:
    """A step that calls a function needs one."""
    if not callable(function):
        raise GraphError.bad_argument(step, "needs a function", function, "pass a function or lambda")


def check_keyed(flow: Flow, step: str) -> None:
    """A step with state per key needs rows by key."""
    if flow.key.is_nothing:
        raise GraphError.needs_keyed(step, "a stream without key")


def check_keyed_alike(left: Flow, right: Flow, step: str) -> None:
    """Both keyed by keys of one type, or neither: keys of different types would never meet."""
    if left.key.is_nothing and right.key.is_nothing:
        return
    if left.key.is_nothing or right.key.is_nothing:
        which = "left" if left.key.is_nothing else "right"
        raise GraphError.bad_argument(
            step, "needs both streams keyed or neither", f"a {which} one without key", "use key_by on it"
        )
    if left.key.parts != right.key.parts:
        raise GraphError.bad_argument(
            step,
            "needs keys of one type on both sides",
            f"{left.key.typed()} and {right.key.typed()}",
            "cast one of them with select",
        )


def check_both_keyed(left: Flow, right: Flow, step: str) -> None:
    """Both keyed, by keys of one type."""
    if left.key.is_nothing and right.key.is_nothing:
        raise GraphError.bad_argument(step, "needs keyed streams", "streams without key", "use key_by on both")
    check_keyed_alike(left, right, step)


def check_has_watermarks(left: Flow, right: Flow, step: str) -> None:
    """Without watermarks event time stands still until the input ends: a live job would keep every row and give nothing."""
    for which, flow in (("left", left), ("right", right)):
        if flow.untimed:
            raise GraphError.bad_argument(
                step,
                "needs event time on both sides, or it would keep all rows and give no result",
                f"source {flow.untimed[0]!r} without watermarks on the {which} side",
                "give the source a strategy, such as hw.Watermarks.bounded('time', '5 s')",
            )


def check_ttls(states: Sequence[StateDeclaration], flow: Flow, step: str) -> None:
    """State that expires by event time needs some, or it would be there for ever."""
    for state in states:
        if state.ttl is not None and state.ttl.clock == EVENT and flow.untimed:
            raise GraphError.bad_argument(
                step,
                "keeps state whose ttl goes by event time, which must move",
                f"source {flow.untimed[0]!r} without watermarks",
                "give the source a strategy, such as hw.Watermarks.bounded('time', '5 s'), or use clock='processing'",
            )


def check_lasts_with_windows(states: Sequence[StateDeclaration], step: str) -> None:
    """What belongs to windows goes with them."""
    for state in states:
        if state.ttl is not None:
            raise GraphError.bad_argument(
                step,
                "keeps state beside windows, which cannot expire",
                f"{state.name} with a ttl",
                "keep it with hw.per_window(...), so that it goes with its window, or in a step behind this one",
            )


def check_time_column(rows: Schema, column: str, step: str) -> None:
    """Event time comes from a column that can hold it."""
    if not is_time_type(rows.field(column).type):
        raise GraphError.bad_argument(
            step, "takes event time from a timestamp or a bigint of milliseconds", column, f"choose from {rows}"
        )


def check_how(how: Any, known: tuple[str, ...], step: str) -> None:
    """A join is one of the kinds that there are."""
    if how not in known:
        raise GraphError.bad_argument(step, f"joins by how={' or '.join(map(repr, known))}", how, "choose one of them")


def check_states(function: object, step: str, elsewhere: Collection[str] = ()) -> None:
    """States are declared on a function's class, where they are found; one on the instance would never be opened.

    The instance may hold those that are declared elsewhere, by name.
    """
    own = {} if isinstance(function, type) else getattr(function, "__dict__", {})
    for attribute, value in own.items():
        if isinstance(value, StateDeclaration) and value.name not in elsewhere:
            raise GraphError.bad_argument(
                step,
                "has its states in the body of its class, where they are found before it runs",
                f"self.{attribute} = hw.{type(value).__name__}(...)",
                f"move it out of __init__: {attribute} = hw.{type(value).__name__}(...)",
            )


def check_tag(tag: Any, rows: Schema, step: str, what: str) -> None:
    """A side output that takes rows of an input as they are has its schema."""
    if tag is None:
        return
    if not isinstance(tag, OutputTag) or tag.schema != rows:
        got = str(tag.schema) if isinstance(tag, OutputTag) else tag
        raise GraphError.bad_argument(
            step, f"needs for {what} an hw.OutputTag of schema '{rows}'", got, "declare the tag with it"
        )
