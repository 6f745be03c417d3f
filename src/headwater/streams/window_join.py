"""The handles on two streams whose rows meet by key in windows: joins and co-groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, Self

from headwater.data.schema import SchemaLike
from headwater.errors import GraphError
from headwater.functions import Emitted, OutputTag, WindowContext
from headwater.graph.edges import Key, KeyPart
from headwater.graph.flow import Flow
from headwater.graph.meeting import group_in_windows, join_in_windows
from headwater.graph.windowed import WindowedPair
from headwater.streams.windowing import WindowingStream
from headwater.windows.assigners import WindowAssigner

if TYPE_CHECKING:
    from headwater.streams.stream import Step, Stream


class PairedStreams:
    """Two streams whose rows are to meet: say by which keys, then in which windows. Each call gives a new handle."""

    _meets = ""

    def __init__(
        self,
        left: Stream,
        right: Stream,
        left_keyed: Flow | None = None,
        right_keyed: Flow | None = None,
        *,
        how: str = "inner",
    ) -> None:
        self._left, self._right, self._how = left, right, how
        self._left_keyed, self._right_keyed = left_keyed, right_keyed

    def __repr__(self) -> str:
        """Which streams."""
        return f"<{type(self).__name__} {self._left!r} and {self._right!r}>"

    def where(self, *key: KeyPart, type: str | None = None) -> Self:  # noqa: A002
        """The key of the left stream: columns, or a function together with the DDL type of its result."""
        keyed = self._left._flow.keyed(Key.of(self._left.schema, key, type, step="where"))
        return self.__class__(self._left, self._right, keyed, self._right_keyed, how=self._how)

    def equal_to(self, *key: KeyPart, type: str | None = None) -> Self:  # noqa: A002
        """The key of the right stream, of the same type as the left one's."""
        keyed = self._right._flow.keyed(Key.of(self._right.schema, key, type, step="equal_to"))
        return self.__class__(self._left, self._right, self._left_keyed, keyed, how=self._how)

    def apply(self, *arguments: Any, **settings: Any) -> NoReturn:
        """Comes after `window`."""
        raise GraphError.bad_argument(self._meets, "needs windows", "apply", "write .window(...) before .apply(...)")

    def _windowed(self, windows: WindowAssigner) -> WindowedPair:
        """Both streams by their keys, which must fit, in windows."""
        left, right = self._given(self._left_keyed, "where"), self._given(self._right_keyed, "equal_to")
        return WindowedPair(left=left, right=right, assigner=windows, meets=self._meets, how=self._how)

    def _given(self, keyed: Flow | None, call: str) -> Flow:
        if keyed is None:
            raise GraphError.bad_argument(
                self._meets, "needs a key of each stream", f"no {call}", f"write .{call}(...) before .window(...)"
            )
        return keyed


class JoinedStreams(PairedStreams):
    """Two streams whose rows are to meet in pairs."""

    _meets = "join"

    def window(self, windows: WindowAssigner) -> WindowedJoin:
        """The windows that rows of a pair have in common."""
        return WindowedJoin(self._left._env, self._windowed(windows))


class CoGroupedStreams(PairedStreams):
    """Two streams whose rows are to meet in groups."""

    _meets = "cogroup"

    def window(self, windows: WindowAssigner) -> WindowedCoGroup:
        """The windows that rows of a group have in common."""
        return WindowedCoGroup(self._left._env, self._windowed(windows))


class WindowedPairStream(WindowingStream[WindowedPair]):
    """The windows of two keyed streams together. Functions of triggers, evictors and windows see rows of both.

    Such a row has `left` and `right`, one of which is None, and `key`.
    """

    def late_left(self, tag: OutputTag) -> Self:
        """Send left rows that are too late to a side output: their fields, and window_start, window_end, late_by_ms."""
        return self._with(late_left=tag)

    def late_right(self, tag: OutputTag) -> Self:
        """Send right rows that are too late to a side output, as `late_left` does with left ones."""
        return self._with(late_right=tag)


class WindowedJoin(WindowedPairStream):
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
        the same name are there once; another right column whose name is taken gets the suffix. In an outer join the row
        that is missing is None, or null in its columns. Semi and anti joins show left rows, and take no function.
        """
        graph = self._env.graph
        return self._step(join_in_windows(graph, self._windows, function=function, schema=schema, suffix=suffix))


class WindowedCoGroup(WindowedPairStream):
    """The windows of a co-group. Say how they work, then what is made of each group; each call gives a new handle."""

    def apply(self, function: Callable[[list[Any], list[Any], WindowContext], Emitted], schema: SchemaLike) -> Step:
        """For each key and window, the rows that `function(lefts, rights, ctx)` gives.

        One of the lists may be empty. The context has the key, the window and the side outputs.
        """
        return self._step(group_in_windows(self._env.graph, self._windows, function=function, schema=schema))
