"""What a job looks like before it runs: its graph, and streams run for their rows alone."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from headwater.connectors.memory import MemorySink
from headwater.durations import Duration, duration_ms
from headwater.errors import GraphError
from headwater.graph.flow import Flow
from headwater.graph.graph import Graph
from headwater.graph.nodes import SinkNode
from headwater.graph.picture import picture
from headwater.job.engine import Job
from headwater.streams.growth import StateGrowthWarning
from headwater.streams.showing import first_rows, table_text

Seen = TypeVar("Seen")


class Previews(ABC):
    """What an environment has to run a part of its graph into memory."""

    graph: Graph

    def _repr_svg_(self) -> str:
        """In a notebook: the job graph."""
        return picture(self.graph)

    @abstractmethod
    def _start(self, graph: Graph, job_dir: Path | None, *, bounded: bool | None) -> Job:
        """Start a graph as a job of its own."""

    def _collect(self, flow: Flow, graph: Graph | None = None, sink: MemorySink | None = None) -> list[Any]:
        """Run the part of a graph above a stream into memory; the job's graph stays as it was."""
        sink = sink or MemorySink()
        self._into(SinkNode.of(flow, sink=sink, name="collect"), lambda job: job.wait(), bounded=True, graph=graph)
        return sink.rows

    def _show(self, flow: Flow, n: int, timeout: Duration, *, bounded: bool | None) -> str:
        """Run it until there are some rows, and no longer than a while; gives them as text."""
        timeout_ms = duration_ms(timeout, what="the timeout of show")
        if type(n) is not int or n < 1:
            raise GraphError.bad_argument("show", "shows 1 row or more", n, "write show(20)")
        sink = MemorySink()
        node = SinkNode.of(flow, sink=sink, name="show")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StateGrowthWarning)  # it does not run for long
            note = self._into(node, lambda job: first_rows(job, sink, n, timeout_ms), bounded=bounded)
        return table_text(node.schema.names, sink.rows[:n], note)

    def _into(
        self, sink: SinkNode, watch: Callable[[Job], Seen], *, bounded: bool | None, graph: Graph | None = None
    ) -> Seen:
        """Run the part of a graph above a sink, which is not in it."""
        whole = (graph or self.graph).copy()
        ends = whole.add(sink)
        job = self._start(whole.upstream_of(ends.origin), None, bounded=bounded)
        try:
            return watch(job)
        except KeyboardInterrupt:
            job.stop()
            raise
