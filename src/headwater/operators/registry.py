"""Which operator runs a node.

It is imported when a step is opened: a worker runs the steps of one job, and comes up faster without those of others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

from headwater.data.schema import Schema
from headwater.graph.nodes import Node, WindowNode
from headwater.graph.nodes.windows import BY_BURSTS, BY_COUNT, BY_ELEMENT, BY_RUNS, BY_SLICES
from headwater.operators.contract import Combiner, Operator, StatelessOperator
from headwater.state.backend import StateBackend
from headwater.state.memory_backend import MEMORY

Home = tuple[str, str] | tuple[str, str, str]
"""Where an operator is: its module here, its class, and in which way that is to work where it knows several."""

STATEFUL: dict[str, Home] = {
    "broadcast_process": ("process.broadcast", "BroadcastProcessOperator"),
    "co_process": ("process.co", "CoProcessOperator"),
    "deduplicate": ("rank.deduplicate", "DeduplicateOperator"),
    "distinct": ("rank.distinct", "DistinctOperator"),
    "interval_join": ("join.interval", "IntervalJoinOperator"),
    "keep_first": ("rank.keep", "KeepFirstOperator"),
    "keep_last": ("rank.keep", "KeepLastOperator"),
    "keyed_process": ("process.keyed", "KeyedProcessOperator"),
    "normalize": ("normalize", "NormalizeOperator"),
    "over_aggregate": ("over.operator", "OverAggregateOperator"),
    "reduce": ("reduce", "ReduceOperator"),
    "regular_join": ("join.regular", "RegularJoinOperator"),
    "running": ("running", "RunningOperator"),
    "session": ("window.session", "SessionOperator"),
    "stateful_process": ("process.stateful", "StatefulProcessOperator"),
    "temporal_join": ("join.temporal", "TemporalJoinOperator"),
    "top_n": ("rank.top_n", "TopNOperator"),
    f"window {BY_BURSTS}": ("window.operator", "WindowOperator", BY_BURSTS),
    f"window {BY_COUNT}": ("window.counted", "CountWindowOperator"),
    f"window {BY_ELEMENT}": ("window.operator", "WindowOperator"),
    f"window {BY_RUNS}": ("window.operator", "WindowOperator", BY_RUNS),
    f"window {BY_SLICES}": ("window.sliced", "SlicedWindowOperator"),
    f"window_join {BY_SLICES}": ("join.window", "WindowJoinOperator"),
    "window_top_n": ("rank.window_top_n", "WindowTopNOperator"),
}
"""By operation, and where there are several ways to compute it, by that."""
STATELESS: dict[str, Home] = {
    "as_changelog": ("stateless.changelog", "AsChangelogOperator"),
    "assign_watermarks": ("stateless.watermarks", "AssignWatermarksOperator"),
    "call": ("stateless.calls", "CallOperator"),
    "compute": ("stateless.functions", "ComputeOperator"),
    "delay_watermarks": ("stateless.watermarks", "DelayWatermarksOperator"),
    "with_row_kind": ("stateless.changelog", "WithRowKindOperator"),
    "map": ("stateless.functions", "MapOperator"),
    "flat_map": ("stateless.functions", "FlatMapOperator"),
    "filter": ("stateless.functions", "FilterOperator"),
    "select": ("stateless.functions", "QueryOperator"),
    "where": ("stateless.functions", "QueryOperator"),
    "map_batches": ("stateless.functions", "MapBatchesOperator"),
    "map_async": ("stateless.map_async", "MapAsyncOperator"),
    "lookup_join": ("lookup.join", "LookupJoinOperator"),
    "process": ("stateless.functions", "ProcessOperator"),
}


def combiner_for(node: Node, step: str) -> Combiner:
    """What combines rows on their way to a step for which that was chosen."""
    assert isinstance(node, WindowNode)
    combiner: Combiner = _maker(("window.slicing", "WindowCombiner"))(node, step)
    return combiner


def operator_for(
    node: Node, step: str, inputs: Sequence[Schema], *, way: str | None = None, backend: StateBackend = MEMORY
) -> Operator:
    """The operator of a stateful step on one subtask; it is given the row class of each of its inputs."""
    make = _maker(STATEFUL[node.operation if way is None else f"{node.operation} {way}"])
    rows = [schema.row for schema in inputs]
    operator: Operator = make(node, step, *rows, backend=backend) if node.uses_backend else make(node, step, *rows)
    return operator


def stateless_operator(node: Node, step: str, input_schema: Schema) -> StatelessOperator:
    """The operator of a stateless step."""
    operator: StatelessOperator = _maker(STATELESS[node.operation])(node, step, input_schema.row)
    return operator


def _maker(home: Home) -> Callable[..., Any]:
    module, name, *ways = home
    make = getattr(import_module(f"headwater.operators.{module}"), name)
    return partial(make, way=ways[0]) if ways else make
