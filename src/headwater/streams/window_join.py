"""The handles on two streams whose rows meet by key in windows: joins and co-groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, Self

import pyarrow as pa

from headwater.data.schema import Schema, SchemaLike
from headwater.errors import GraphError
from headwater.functions import Emitted, OutputTag, ProcessWindowFunction, WindowContext
from headwater.graph.nodes import LEFT, RIGHT, WindowInput, WindowJoinNode, WindowNode
from headwater.streams.keying import KeyPart, key_of
from headwater.streams.pairs import add_join, check_has_watermarks, check_keyed, joined
from headwater.streams.tagging import CoGroupFunction, JoinFunction, SideBySide, tagged, tagged_schema
from headwater.streams.windowing import Windowing
from headwater.windows.assigners import EVENT, SlicedAssigner, WindowAssigner
from headwater.windows.triggers import EventTimeTrigger

if TYPE_CHECKING:
    from headwater.streams.keyed import KeyedStream
    from headwater.streams.stream import Step, Stream


class PairedStreams:
    """Two streams whose rows are to meet: say by which keys, then in which windows. Each call gives a new handle."""

    _step = ""

    def __init__(
        self, left: Stream, right: Stream, left_keyed: KeyedStream | None = None, right_keyed: KeyedStream | None = None
    ) -> None:
        self._left, self._right = left, right
        self._left_keyed, self._right_keyed = left_keyed, right_keyed

    def where(self, *key: KeyPart, type: str | None = None) -> Self:  # noqa: A002
        """The key of the left stream: columns, or a function together with the DDL type of its result."""
        keyed = self._left._by_key(key_of(self._left.schema, key, type, "where"))
        return self.__class__(self._left, self._right, keyed, self._right_keyed)

    def equal_to(self, *key: KeyPart, type: str | None = None) -> Self:  # noqa: A002
        """The key of the right stream, of the same type as the left one's."""
        keyed = self._right._by_key(key_of(self._right.schema, key, type, "equal_to"))
        return self.__class__(self._left, self._right, self._left_keyed, keyed)

    def apply(self, *arguments: Any, **settings: Any) -> NoReturn:
        """Comes after `window`."""
        raise GraphError.bad_argument(self._step, "needs windows", "apply", "write .window(...) before .apply(...)")

    def _sides(self) -> tuple[KeyedStream, KeyedStream]:
        """Both streams by their keys, which must fit."""
        left, right = self._given(self._left_keyed, "where"), self._given(self._right_keyed, "equal_to")
        check_keyed(left, right, self._step)
        return left, right

    def _given(self, keyed: KeyedStream | None, call: str) -> KeyedStream:
        if keyed is None:
            raise GraphError.bad_argument(
                self._step, "needs a key of each stream", f"no {call}", f"write .{call}(...) before .window(...)"
            )
        return keyed


class JoinedStreams(PairedStreams):
    """Two streams whose rows are to meet in pairs."""

    _step = "join"

    def window(self, windows: WindowAssigner) -> WindowedJoin:
        """The windows that rows of a pair have in common."""
        return WindowedJoin(self._sides(), windows, "window_join")


class CoGroupedStreams(PairedStreams):
    """Two streams whose rows are to meet in groups."""

    _step = "cogroup"

    def window(self, windows: WindowAssigner) -> WindowedCoGroup:
        """The windows that rows of a group have in common."""
        return WindowedCoGroup(self._sides(), windows, "window_cogroup")


class WindowedPair(Windowing):
    """The windows of two keyed streams together. Functions of triggers, evictors and windows see rows of both.

    Such a row has `left` and `right`, one of which is None, and `key`.
    """

    def __init__(self, streams: tuple[KeyedStream, KeyedStream], assigner: WindowAssigner, step: str) -> None:
        self._streams, self._step = streams, step
        self._late: tuple[OutputTag | None, OutputTag | None] = (None, None)
        super().__init__(tagged_schema(*self._sides()), assigner)

    def late_left(self, tag: OutputTag) -> Self:
        """Send left rows that are too late to a side output: their fields, and window_start, window_end, late_by_ms."""
        self._check_late(tag, self._streams[LEFT].schema, "late_left")
        return self._with(_late=(tag, self._late[RIGHT]))

    def late_right(self, tag: OutputTag) -> Self:
        """Send right rows that are too late to a side output, as `late_left` does with left ones."""
        self._check_late(tag, self._streams[RIGHT].schema, "late_right")
        return self._with(_late=(self._late[LEFT], tag))

    # -- inside -----------------------------------------------------------------------------------------------------

    def _sides(self, lateness_ms: int = 0) -> tuple[WindowInput, WindowInput]:
        left, right = (
            WindowInput(stream.schema, stream.key, lateness_ms, late)
            for stream, late in zip(self._streams, self._late, strict=True)
        )
        return left, right

    def _check_watermarks(self) -> None:
        if self._assigner.domain == EVENT and self._assigner.is_bounded:
            check_has_watermarks(*self._streams, self._step)

    def _add_windows(self, process: ProcessWindowFunction, value: Schema, shown: Schema) -> Step:
        """A window step over both streams as one; what it shows beside its value is the window."""
        trigger = self._firing(self._step)
        self._check_watermarks()
        sides = self._sides(self._lateness_ms)
        stream = tagged(self._streams, sides, self._step)
        return stream._add(
            WindowNode,
            self._step,
            shown,
            key=stream.key,
            input_schema=stream.schema,
            assigner=self._assigner,
            trigger=trigger,
            evictor=self._evicting(),
            evicts_after=self._evicts_after,
            lateness_ms=self._lateness_ms,
            value=value,
            process=process,
            sides=sides,
        )


class WindowedJoin(WindowedPair):
    """The windows of a join. Say how they work, then what becomes of each pair; each call gives a new handle."""

    def apply(
        self,
        function: Callable[[Any, Any], Any] | None = None,
        schema: SchemaLike | None = None,
        *,
        suffix: str = "_right",
    ) -> Step:
        """For each pair of rows with a key and a window in common, the row that `function(left, right)` gives, if any.

        Without a function: the columns of both, and window_start and window_end where windows have them. Key columns of
        the same name are there once; another right column whose name is taken gets the suffix.
        """
        if function is None:
            if schema is not None:
                raise GraphError.bad_argument(
                    self._step,
                    "takes a schema together with a function only",
                    schema,
                    "leave it out, or add a function",
                )
            return self._side_by_side(suffix)
        value = _given_schema(self._step, function, schema, "left, right")
        return self._add_windows(JoinFunction(function), value, value)

    def _side_by_side(self, suffix: str) -> Step:
        left, right = self._streams
        value, columns = joined(left, right, suffix, self._step)
        shown = Schema(pa.schema([*value.arrow, *self._window_fields()]))
        self._check_window_names(value)
        assigner = self._assigner
        is_plain = type(self._firing(self._step)) is EventTimeTrigger and self._evictor is None
        if not is_plain or not isinstance(assigner, SlicedAssigner) or not assigner.has_few_slices:
            places = tuple(right.schema.names.index(name) for name in columns)
            return self._add_windows(JoinFunction(SideBySide(places)), value, shown)
        self._check_watermarks()
        return add_join(
            left,
            right,
            WindowJoinNode,
            self._step,
            shown,
            shown=columns,
            assigner=assigner,
            lateness_ms=self._lateness_ms,
            late_left=self._late[LEFT],
            late_right=self._late[RIGHT],
        )

    def _check_window_names(self, value: Schema) -> None:
        taken = [field.name for field in self._window_fields() if field.name in value.names]
        if taken:
            raise GraphError.bad_argument(
                self._step, "needs other names than those of the window", ", ".join(taken), "rename them with select"
            )


class WindowedCoGroup(WindowedPair):
    """The windows of a co-group. Say how they work, then what is made of each group; each call gives a new handle."""

    def apply(self, function: Callable[[list[Any], list[Any], WindowContext], Emitted], schema: SchemaLike) -> Step:
        """For each key and window, the rows that `function(lefts, rights, ctx)` gives.

        One of the lists may be empty. The context has the key, the window and the side outputs.
        """
        value = _given_schema(self._step, function, schema, "lefts, rights, ctx")
        return self._add_windows(CoGroupFunction(function), value, value)


def _given_schema(step: str, function: Any, schema: SchemaLike | None, arguments: str) -> Schema:
    """The schema of what a function gives."""
    if not callable(function):
        raise GraphError.bad_argument(step, f"needs a function of {arguments}", function, "pass a function")
    if schema is None:
        raise GraphError.bad_argument(
            step, "needs the schema of what the function gives", None, "add schema='n bigint'"
        )
    return Schema.of(schema)
