"""Which operator runs a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from headwater.data.schema import Schema
from headwater.graph.nodes import Node, WindowNode
from headwater.graph.nodes.windows import BY_BURSTS, BY_COUNT, BY_ELEMENT, BY_RUNS, BY_SLICES
from headwater.operators.contract import Combiner, Operator, StatelessOperator
from headwater.operators.join.interval import IntervalJoinOperator
from headwater.operators.join.regular import RegularJoinOperator
from headwater.operators.join.temporal import TemporalJoinOperator
from headwater.operators.join.window import WindowJoinOperator
from headwater.operators.lookup.join import LookupJoinOperator
from headwater.operators.normalize import NormalizeOperator
from headwater.operators.over.operator import OverAggregateOperator
from headwater.operators.process.broadcast import BroadcastProcessOperator
from headwater.operators.process.co import CoProcessOperator
from headwater.operators.process.keyed import KeyedProcessOperator
from headwater.operators.process.stateful import StatefulProcessOperator
from headwater.operators.rank.deduplicate import DeduplicateOperator
from headwater.operators.rank.distinct import DistinctOperator
from headwater.operators.rank.keep import KeepFirstOperator, KeepLastOperator
from headwater.operators.rank.top_n import TopNOperator
from headwater.operators.rank.window_top_n import WindowTopNOperator
from headwater.operators.reduce import ReduceOperator
from headwater.operators.running import RunningOperator
from headwater.operators.stateless.calls import CallOperator
from headwater.operators.stateless.changelog import AsChangelogOperator, WithRowKindOperator
from headwater.operators.stateless.functions import (
    ComputeOperator,
    FilterOperator,
    FlatMapOperator,
    MapBatchesOperator,
    MapOperator,
    ProcessOperator,
    QueryOperator,
)
from headwater.operators.stateless.map_async import MapAsyncOperator
from headwater.operators.stateless.watermarks import AssignWatermarksOperator, DelayWatermarksOperator
from headwater.operators.window.counted import CountWindowOperator
from headwater.operators.window.operator import WindowOperator
from headwater.operators.window.sliced import SlicedWindowOperator
from headwater.operators.window.slicing import WindowCombiner
from headwater.state.backend import StateBackend
from headwater.state.memory import MEMORY

STATEFUL: dict[str, Callable[..., Operator]] = {
    "broadcast_process": BroadcastProcessOperator,
    "co_process": CoProcessOperator,
    "deduplicate": DeduplicateOperator,
    "distinct": DistinctOperator,
    "interval_join": IntervalJoinOperator,
    "keep_first": KeepFirstOperator,
    "keep_last": KeepLastOperator,
    "keyed_process": KeyedProcessOperator,
    "normalize": NormalizeOperator,
    "over_aggregate": OverAggregateOperator,
    "reduce": ReduceOperator,
    "regular_join": RegularJoinOperator,
    "running": RunningOperator,
    "stateful_process": StatefulProcessOperator,
    "temporal_join": TemporalJoinOperator,
    "top_n": TopNOperator,
    f"window {BY_BURSTS}": partial(WindowOperator, way=BY_BURSTS),
    f"window {BY_COUNT}": CountWindowOperator,
    f"window {BY_ELEMENT}": WindowOperator,
    f"window {BY_RUNS}": partial(WindowOperator, way=BY_RUNS),
    f"window {BY_SLICES}": SlicedWindowOperator,
    f"window_join {BY_SLICES}": WindowJoinOperator,
    "window_top_n": WindowTopNOperator,
}
"""By operation, and where there are several ways to compute it, by that."""
STATELESS: dict[str, Callable[..., StatelessOperator]] = {
    "as_changelog": AsChangelogOperator,
    "assign_watermarks": AssignWatermarksOperator,
    "call": CallOperator,
    "compute": ComputeOperator,
    "delay_watermarks": DelayWatermarksOperator,
    "with_row_kind": WithRowKindOperator,
    "map": MapOperator,
    "flat_map": FlatMapOperator,
    "filter": FilterOperator,
    "select": QueryOperator,
    "where": QueryOperator,
    "map_batches": MapBatchesOperator,
    "map_async": MapAsyncOperator,
    "lookup_join": LookupJoinOperator,
    "process": ProcessOperator,
}


def combiner_for(node: Node, step: str) -> Combiner:
    """What combines rows on their way to a step for which that was chosen."""
    assert isinstance(node, WindowNode)
    return WindowCombiner(node, step)


def operator_for(
    node: Node, step: str, inputs: Sequence[Schema], *, way: str | None = None, backend: StateBackend = MEMORY
) -> Operator:
    """The operator of a stateful step on one subtask; it is given the row class of each of its inputs."""
    make = STATEFUL[node.operation if way is None else f"{node.operation} {way}"]
    rows = [schema.row for schema in inputs]
    return make(node, step, *rows, backend=backend) if node.uses_backend else make(node, step, *rows)


def stateless_operator(node: Node, step: str, input_schema: Schema) -> StatelessOperator:
    """The operator of a stateless step."""
    return STATELESS[node.operation](node, step, input_schema.row)
