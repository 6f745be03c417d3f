"""Process functions that keep something: per key, per subtask, over two inputs, beside a broadcast stream."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from headwater.data.schema import Schema, SchemaLike
from headwater.declared import keyed_states, operator_states
from headwater.descriptors import MapState, OperatorListState, StateDeclaration
from headwater.errors import GraphError
from headwater.functions import (
    BroadcastFunction,
    CoProcessFunction,
    KeyedBroadcastFunction,
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
    name_of,
    sets_event_time_timers,
)
from headwater.graph.checks import check_keyed, check_states, check_ttls
from headwater.graph.connected import Broadcast, Connected, pair_edges
from headwater.graph.edges import Key
from headwater.graph.flow import Flow
from headwater.graph.nodes.core import Node, declared, ttls_of, with_ttl
from headwater.graph.nodes.rows import ProcessNode


@dataclass(frozen=True, kw_only=True)
class StatefulProcessNode(Node):
    """A process function with operator state; without a key."""

    operation: ClassVar[str] = "stateful_process"
    is_stateful: ClassVar[bool] = True

    function: ProcessFunction
    states: tuple[OperatorListState[Any], ...]

    @classmethod
    def of(cls, flow: Flow, *, function: ProcessFunction, schema: SchemaLike, name: str | None = None) -> Self:
        """Rows that no exchange brings to its subtasks are dealt out evenly."""
        step = name or name_of(function)
        if not isinstance(function, ProcessFunction):
            raise GraphError.bad_argument("process", "needs a hw.ProcessFunction", function, "pass an instance")
        states = tuple(operator_states(function, step))
        edges = flow.spread().edges
        return cls(name=step, inputs=edges, schema=Schema.of(schema), function=function, states=states)

    def kept(self) -> dict[str, Any]:
        return {"states": declared(self.states)}


@dataclass(frozen=True, kw_only=True)
class KeyedProcessNode(Node):
    """A keyed process function with its state declarations."""

    operation: ClassVar[str] = "keyed_process"
    is_stateful: ClassVar[bool] = True
    uses_backend: ClassVar[bool] = True

    function: KeyedProcessFunction
    states: tuple[StateDeclaration, ...]
    key: Key

    @classmethod
    def of(cls, flow: Flow, *, function: KeyedProcessFunction, schema: SchemaLike, name: str | None = None) -> Self:
        step = name or name_of(function)
        if not isinstance(function, KeyedProcessFunction):
            raise GraphError.bad_argument("process", "needs a hw.KeyedProcessFunction", function, "pass an instance")
        check_keyed(flow, step)
        states = tuple(keyed_states(function, step))
        check_ttls(states, flow, step)
        return cls(
            name=step, inputs=flow.edges, schema=Schema.of(schema), function=function, states=states, key=flow.key
        )

    def lasting(self, ttl_ms: int) -> Self:
        return replace(self, states=with_ttl(self.states, ttl_ms))

    def kept(self) -> dict[str, Any]:
        return {"key": self.key.typed(), "states": declared(self.states), **ttls_of(self.states)}

    @property
    def gives_times(self) -> bool:
        return type(self.function).on_timer is not KeyedProcessFunction.on_timer  # a timer's results have its time

    @property
    def waits_for_event_time(self) -> bool:
        return sets_event_time_timers(self.function)


@dataclass(frozen=True, kw_only=True)
class CoProcessNode(Node):
    """A function over two inputs with its state declarations; the inputs are keyed alike or, with `NO_KEY`, not at all."""

    operation: ClassVar[str] = "co_process"
    is_stateful: ClassVar[bool] = True
    uses_backend: ClassVar[bool] = True
    waits_by_side: ClassVar[bool] = True

    function: CoProcessFunction
    states: tuple[StateDeclaration, ...]
    key: Key
    right_key: Key

    @classmethod
    def of(
        cls, connected: Connected, *, function: CoProcessFunction, schema: SchemaLike, name: str | None = None
    ) -> Self:
        if not isinstance(function, CoProcessFunction):
            raise GraphError.bad_argument("process", "needs a hw.CoProcessFunction", function, "pass an instance")
        left, right = connected.left, connected.right
        step = name or name_of(function)
        check_states(function, step)
        states = tuple(keyed_states(function, step))
        if states and left.key.is_nothing:
            raise GraphError.bad_argument(
                step, "keeps state per key, so it needs keyed streams", "streams without key", "use key_by on both"
            )
        check_ttls(states, left, step)
        check_ttls(states, right, step)
        return cls(
            name=step,
            inputs=pair_edges(left, right),
            schema=Schema.of(schema),
            function=function,
            states=states,
            key=left.key,
            right_key=right.key,
        )

    def lasting(self, ttl_ms: int) -> Self:
        return replace(self, states=with_ttl(self.states, ttl_ms))

    def kept(self) -> dict[str, Any]:
        return {
            "key": self.key.typed(),
            "right key": self.right_key.describe(),
            "states": declared(self.states),
            **ttls_of(self.states),
        }

    @property
    def waits_for_event_time(self) -> bool:
        return sets_event_time_timers(self.function)


@dataclass(frozen=True, kw_only=True)
class BroadcastProcessNode(Node):
    """A function over a stream, keyed or with `NO_KEY`, and a broadcast stream whose rows are kept in broadcast states."""

    operation: ClassVar[str] = "broadcast_process"
    is_stateful: ClassVar[bool] = True
    uses_backend: ClassVar[bool] = True
    waits_by_side: ClassVar[bool] = True

    function: BroadcastFunction
    states: tuple[StateDeclaration, ...]
    broadcast_states: tuple[MapState[Any, Any], ...]
    key: Key

    @classmethod
    def of(
        cls,
        data: Flow,
        broadcast: Broadcast,
        *,
        function: BroadcastFunction,
        schema: SchemaLike,
        name: str | None = None,
    ) -> Self:
        step = name or name_of(function)
        _check_fits(function, step, is_keyed=not data.key.is_nothing)
        check_states(function, step, {state.name for state in broadcast.states})
        states = tuple(keyed_states(function, step))
        if states and data.key.is_nothing:
            raise GraphError.bad_argument(
                step, "keeps state per key", states[0].name, "make it a hw.KeyedBroadcastFunction on a keyed stream"
            )
        check_ttls(states, data, step)
        check_ttls(states, broadcast.flow, step)
        for state in states:
            if any(state.name == other.name for other in broadcast.states):
                raise GraphError.bad_argument(
                    step,
                    "needs keyed and broadcast states of different names",
                    state.name,
                    "rename one, or declare the broadcast state outside of the class",
                )
        return cls(
            name=step,
            inputs=pair_edges(data, broadcast.flow),
            schema=Schema.of(schema),
            function=function,
            states=states,
            broadcast_states=broadcast.states,
            key=data.key,
        )

    def lasting(self, ttl_ms: int) -> Self:
        return replace(self, states=with_ttl(self.states, ttl_ms))

    def kept(self) -> dict[str, Any]:
        return {
            "key": self.key.typed(),
            "states": declared(self.states),
            "broadcast states": declared(self.broadcast_states),
            **ttls_of(self.states),
        }

    @property
    def waits_for_event_time(self) -> bool:
        return sets_event_time_timers(self.function)


def process_node(
    flow: Flow, *, function: Any, schema: SchemaLike, name: str | None = None, failed_to: OutputTag | None = None
) -> ProcessNode | StatefulProcessNode | KeyedProcessNode:
    """The step that runs a process function: which one it is depends on what the function is and keeps."""
    step = name or name_of(function)
    check_states(function, step)
    if isinstance(function, ProcessFunction):
        if not operator_states(function, step):
            return ProcessNode.of(flow, function=function, schema=schema, failed_to=failed_to, name=name)
        _refuse_failed_to(step, failed_to)
        return StatefulProcessNode.of(flow, function=function, schema=schema, name=name)
    if flow.key.is_nothing and not isinstance(function, KeyedProcessFunction):
        raise GraphError.bad_argument(
            "process",
            "needs a hw.ProcessFunction (hw.KeyedProcessFunction on a keyed stream)",
            function,
            "pass an instance",
        )
    if isinstance(function, KeyedProcessFunction):
        _refuse_failed_to(step, failed_to)
    return KeyedProcessNode.of(flow, function=function, schema=schema, name=name)


def _refuse_failed_to(step: str, tag: OutputTag | None) -> None:
    """Refuse for a function that may have written state before it failed."""
    if tag is not None:
        raise GraphError.bad_argument(
            step,
            "has a function with state, and what a call that fails has written cannot be taken back",
            "failed_to=",
            "catch the error in the function, and send the row on with ctx.output(tag, row)",
        )


def _check_fits(function: object, step: str, *, is_keyed: bool) -> None:
    """A function knows keys if and only if its stream has them."""
    knows_keys = isinstance(function, KeyedBroadcastFunction)
    if knows_keys and not is_keyed:
        raise GraphError.needs_keyed(step, "a stream without key")
    if not isinstance(function, BroadcastFunction) or knows_keys != is_keyed:
        needed = "hw.KeyedBroadcastFunction on a keyed stream" if is_keyed else "hw.BroadcastFunction"
        raise GraphError.bad_argument(
            "process", f"beside a broadcast stream needs a {needed}", function, "pass an instance"
        )
