"""Where rows leave a job, as methods of streams."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headwater.connectors.console import ConsoleSink
from headwater.connectors.contract import Sink
from headwater.connectors.dataframes import DataFrameSink
from headwater.durations import Duration
from headwater.errors import HeadwaterError
from headwater.graph.nodes import SinkNode
from headwater.streams.steps.handle import Handle

if TYPE_CHECKING:
    from headwater.streams.stream import Step


class Ends(Handle):
    """Where the rows of a stream can go."""

    def sink(self, sink: Sink, *, name: str = "sink") -> Step:
        """Hand the rows to a sink."""
        return self._add(SinkNode.of(self._flow, sink=sink, name=name))

    def to_dataframe_sink(
        self, write: Callable[[Any, int], None], *, idempotent: bool = False, name: str = "dataframe"
    ) -> Step:
        """Call `write(frame, epoch)` with the rows of each committed epoch as a DataFrame of Spark, in the driver.

        After a failure it may be called again with an epoch and the same rows; if that changes nothing, say
        `idempotent=True`.
        """
        return self.sink(DataFrameSink(write, idempotent=idempotent), name=name)

    def print(self) -> Step:
        """Print the rows of each committed epoch."""
        return self.sink(ConsoleSink(), name="print")

    def show(self, n: int = 20, *, timeout: Duration = "10 s", bounded: bool | None = None) -> None:
        """Run this stream's part of the job for its first `n` rows, and print them as a table.

        It stops when it has them, when the input ends, or after `timeout`, with what there is by then. With
        `bounded=True` a live source ends with what input there is now, as for `collect`.

        >>> env = Environment("doc", engine="local")
        >>> env.from_rows([("ann", 3), ("bob", None)], "user string, n int").show()
        user  n
        ----  ----
        ann   3
        bob   null
        """
        sys.stdout.write(self._env._show(self._flow, n, timeout, bounded=bounded))

    def collect(self) -> list[Any]:
        """Run this stream's part of the job over what input there is, to the end, and give its rows."""
        try:
            return self._env._collect(self._flow)
        except HeadwaterError as error:  # it tells all in its text
            raise error.with_traceback(None) from error.__cause__
