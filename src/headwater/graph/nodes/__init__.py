"""Every kind of step that a job can be made of, by family."""

from __future__ import annotations

from headwater.graph.nodes.aggregates import ReduceNode, RunningNode
from headwater.graph.nodes.calls import CallNode
from headwater.graph.nodes.changelog import AsChangelogNode, NormalizeNode, WithRowKindNode
from headwater.graph.nodes.columns import ComputeNode, MapBatchesNode, SelectNode, WhereNode
from headwater.graph.nodes.core import Node
from headwater.graph.nodes.deduplication import DeduplicateNode, DistinctNode, KeepFirstNode, KeepLastNode
from headwater.graph.nodes.ends import SinkNode, SourceNode
from headwater.graph.nodes.joins import IntervalJoinNode, JoinNode, RegularJoinNode, TemporalJoinNode
from headwater.graph.nodes.lookup import LookupJoinNode
from headwater.graph.nodes.over import OverAggregateNode
from headwater.graph.nodes.process import BroadcastProcessNode, CoProcessNode, KeyedProcessNode, StatefulProcessNode
from headwater.graph.nodes.ranks import TopNNode, WindowTopNNode
from headwater.graph.nodes.rows import FilterNode, FlatMapNode, MapAsyncNode, MapNode, ProcessNode, RowFunctionNode
from headwater.graph.nodes.sessions import SessionNode
from headwater.graph.nodes.times import AssignWatermarksNode, DelayWatermarksNode
from headwater.graph.nodes.windows import WindowInput, WindowJoinNode, WindowNode

__all__ = [
    "AsChangelogNode",
    "AssignWatermarksNode",
    "BroadcastProcessNode",
    "CallNode",
    "CoProcessNode",
    "ComputeNode",
    "DeduplicateNode",
    "DelayWatermarksNode",
    "DistinctNode",
    "FilterNode",
    "FlatMapNode",
    "IntervalJoinNode",
    "JoinNode",
    "KeepFirstNode",
    "KeepLastNode",
    "KeyedProcessNode",
    "LookupJoinNode",
    "MapAsyncNode",
    "MapBatchesNode",
    "MapNode",
    "Node",
    "NormalizeNode",
    "OverAggregateNode",
    "ProcessNode",
    "ReduceNode",
    "RegularJoinNode",
    "RowFunctionNode",
    "RunningNode",
    "SelectNode",
    "SessionNode",
    "SinkNode",
    "SourceNode",
    "StatefulProcessNode",
    "TemporalJoinNode",
    "TopNNode",
    "WhereNode",
    "WindowInput",
    "WindowJoinNode",
    "WindowNode",
    "WindowTopNNode",
    "WithRowKindNode",
]
