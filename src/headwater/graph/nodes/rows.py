"""Python functions without state that get rows one by one."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import pyarrow as pa

from headwater.data.schema import Schema, SchemaLike
from headwater.declared import operator_states
from headwater.durations import Duration, duration_ms
from headwater.errors import GraphError
from headwater.functions import OutputTag, ProcessFunction, name_of
from headwater.graph.changelog import APPEND_OR_RETRACT, Modes
from headwater.graph.checks import check_callable
from headwater.graph.flow import Flow
from headwater.graph.nodes.core import Node
from headwater.retry import Retry


@dataclass(frozen=True, kw_only=True)
class RowFunctionNode(Node):
    """A Python function without state that gets rows one by one."""

    function: Any
    failed_to: OutputTag | None
    """Where the rows go for which the function fails; without it they fail the job."""


@dataclass(frozen=True, kw_only=True)
class MapNode(RowFunctionNode):
    """One row in, one row out, by a Python function."""

    operation: ClassVar[str] = "map"
    taken: ClassVar[Modes] = APPEND_OR_RETRACT

    @classmethod
    def of(
        cls,
        flow: Flow,
        *,
        function: Callable[[Any], Any],
        schema: SchemaLike | None = None,
        failed_to: OutputTag | None = None,
        name: str = "map",
    ) -> Self:
        """Without a schema the rows keep theirs."""
        return cls(schema=_or_same(schema, flow), **_called(flow, function, failed_to, name))


@dataclass(frozen=True, kw_only=True)
class FlatMapNode(RowFunctionNode):
    """One row in, any number of rows out, by a Python function."""

    operation: ClassVar[str] = "flat_map"
    taken: ClassVar[Modes] = APPEND_OR_RETRACT

    @classmethod
    def of(
        cls,
        flow: Flow,
        *,
        function: Callable[[Any], Iterable[Any]],
        schema: SchemaLike | None = None,
        failed_to: OutputTag | None = None,
        name: str = "flat_map",
    ) -> Self:
        """Without a schema the rows keep theirs."""
        return cls(schema=_or_same(schema, flow), **_called(flow, function, failed_to, name))


@dataclass(frozen=True, kw_only=True)
class FilterNode(RowFunctionNode):
    """Keeps the rows for which a Python function is true."""

    operation: ClassVar[str] = "filter"
    taken: ClassVar[Modes] = APPEND_OR_RETRACT

    @classmethod
    def of(
        cls,
        flow: Flow,
        *,
        function: Callable[[Any], bool],
        failed_to: OutputTag | None = None,
        name: str = "filter",
    ) -> Self:
        return cls(schema=flow.schema, **_called(flow, function, failed_to, name))


@dataclass(frozen=True, kw_only=True)
class ProcessNode(RowFunctionNode):
    """A stateless process function with side outputs."""

    operation: ClassVar[str] = "process"

    @classmethod
    def of(
        cls,
        flow: Flow,
        *,
        function: ProcessFunction,
        schema: SchemaLike,
        failed_to: OutputTag | None = None,
        name: str | None = None,
    ) -> Self:
        step = name or name_of(function)
        if not isinstance(function, ProcessFunction):
            raise GraphError.bad_argument("process", "needs a hw.ProcessFunction", function, "pass an instance")
        states = operator_states(function, step)
        if states:
            raise GraphError.bad_argument(
                step, "keeps nothing as a stateless step", states[0].name, "make it a StatefulProcessNode"
            )
        outputs = _failed_output(step, failed_to, flow.schema)
        return cls(
            name=step,
            inputs=flow.edges,
            schema=Schema.of(schema),
            outputs=outputs,
            function=function,
            failed_to=failed_to,
        )


@dataclass(frozen=True, kw_only=True)
class MapAsyncNode(RowFunctionNode):
    """One row in, one row or none out, by a coroutine function."""

    operation: ClassVar[str] = "map_async"

    capacity: int
    timeout_ms: int | None
    retry: Retry | None
    ordered: bool
    timeout_to: OutputTag | None

    @classmethod
    def of(
        cls,
        flow: Flow,
        *,
        function: Callable[[Any], Awaitable[Any]],
        schema: SchemaLike | None = None,
        capacity: int = 100,
        timeout: Duration | None = None,
        retry: Retry | None = None,
        ordered: bool = True,
        timeout_to: OutputTag | None = None,
        failed_to: OutputTag | None = None,
        name: str = "map_async",
    ) -> Self:
        """Without a schema the rows keep theirs."""
        _check_async(name, function)
        if type(capacity) is not int or capacity < 1:
            raise GraphError.bad_argument(name, "has a capacity of 1 call or more", capacity, "100 is a good number")
        timeout_ms = None if timeout is None else duration_ms(timeout, what=f"the timeout of step {name!r}")
        if timeout_ms == 0:
            raise GraphError.bad_argument(name, "needs a timeout of more than nothing", timeout, "leave it out to wait")
        if retry is not None and not isinstance(retry, Retry):
            raise GraphError.bad_argument(name, "needs a hw.Retry", retry, "write retry=hw.Retry(attempts=3)")
        timed_out = _timeout_output(name, timeout_to, flow.schema, timeout_ms)
        failed = _failed_output(name, failed_to, flow.schema)
        if timed_out.keys() & failed.keys():
            raise GraphError.bad_argument(
                name, "needs different names for timeout_to and failed_to", timeout_to, "rename one"
            )
        return cls(
            name=name,
            inputs=flow.edges,
            schema=_or_same(schema, flow),
            outputs={**timed_out, **failed},
            function=function,
            failed_to=failed_to,
            capacity=capacity,
            timeout_ms=timeout_ms,
            retry=retry,
            ordered=ordered,
            timeout_to=timeout_to,
        )

    @property
    def asks_outside(self) -> bool:
        return True


def _or_same(schema: SchemaLike | None, flow: Flow) -> Schema:
    return flow.schema if schema is None else Schema.of(schema)


def _called(flow: Flow, function: Any, failed_to: OutputTag | None, step: str) -> dict[str, Any]:
    """The settings of a step that calls a function for each row, but for its schema."""
    outputs = _failed_output(step, failed_to, flow.schema)
    check_callable(function, step)
    if outputs and not flow.changelog.is_append_only:
        raise GraphError.bad_argument(
            step,
            "cannot put rows of a changelog aside: they would lose what they do",
            f"failed_to={failed_to}",
            "leave it out, or call .with_row_kind() first",
        )
    return {
        "name": step,
        "inputs": flow.edges,
        "outputs": outputs,
        "changelog": flow.changelog.retracting(),
        "function": function,
        "failed_to": failed_to,
    }


def _failed_output(step: str, tag: OutputTag | None, rows: Schema) -> Mapping[str, Schema]:
    """The side output for rows whose function fails: the row, and in one more column the error."""
    if tag is None:
        return {}
    if not isinstance(tag, OutputTag):
        raise GraphError.bad_argument(step, "sends rows that fail to a hw.OutputTag", tag, "make one for it")
    *columns, error = tag.schema.arrow
    if columns != list(rows.arrow) or error.type != pa.string():
        raise GraphError.bad_argument(
            step,
            "sends its input and, in one more column, the error to failed_to",
            str(tag.schema),
            f"give the tag the schema '{rows}, error string'",
        )
    return {tag.name: tag.schema}


def _timeout_output(step: str, tag: OutputTag | None, rows: Schema, timeout_ms: int | None) -> Mapping[str, Schema]:
    """The side output for rows that time out, as they are."""
    if tag is None:
        return {}
    if not isinstance(tag, OutputTag):
        raise GraphError.bad_argument(step, "sends rows that time out to a hw.OutputTag", tag, "make one for it")
    if timeout_ms is None:
        raise GraphError.bad_argument(
            step, "has timeout_to but no timeout", tag.name, "add timeout='5 s', or leave it out"
        )
    if tag.schema != rows:
        raise GraphError.bad_argument(
            step, f"sends its input to timeout_to, which is '{rows}'", str(tag.schema), "give the tag that schema"
        )
    return {tag.name: tag.schema}


def _check_async(step: str, function: Any) -> None:
    if not inspect.iscoroutinefunction(function) and not _is_async(type(function), "__call__"):
        raise GraphError.bad_argument(
            step,
            "needs a coroutine function, or an object with one as __call__",
            function,
            "write async def, or use map for an ordinary function",
        )
    for name in ("open", "close"):
        if hasattr(function, name) and not _is_async(function, name):
            raise GraphError.bad_argument(
                step, f"awaits its function's {name}, which must be a coroutine function", function, "write async def"
            )


def _is_async(owner: Any, name: str) -> bool:
    return inspect.iscoroutinefunction(getattr(owner, name, None))
