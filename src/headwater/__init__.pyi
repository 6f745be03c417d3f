"""The public names, and where they are at home; `__init__.py` imports each when it is first used."""

from headwater import connectors, control, metrics, restart, testing
from headwater.aggregates import (
    Aggregate,
    approx_count_distinct,
    approx_quantile,
    avg,
    collect_list,
    collect_set,
    count_distinct,
    first,
    first_value,
    last,
    last_value,
    max,  # noqa: A004
    max_by,
    min,  # noqa: A004
    min_by,
    stddev,
    sum,  # noqa: A004
    var,
)
from headwater.budgets import Budget, budget
from headwater.connectors.contract import DEAD_LETTERS, Guarantee
from headwater.data.schema import Schema
from headwater.descriptors import (
    AggregatingState,
    ListState,
    MapState,
    OperatorListState,
    ReducingState,
    UnionListState,
    ValueState,
    per_window,
)
from headwater.epoch.steps import EpochStep
from headwater.errors import (
    ChangelogError,
    DurationError,
    GraphError,
    HeadwaterError,
    JavaMissing,
    JobError,
    PublishError,
    RowError,
    SchemaError,
    SourceError,
    StateBudgetExceeded,
    StateError,
    UserCodeError,
)
from headwater.eventlog import EventLog, Retention
from headwater.eventlog.errors import LogError
from headwater.expiry import Ttl, ttl
from headwater.functions import (
    AggregateFunction,
    BroadcastContext,
    BroadcastFunction,
    Context,
    CoProcessFunction,
    KeyedBroadcastFunction,
    KeyedProcessFunction,
    OutputTag,
    Pane,
    ProcessFunction,
    ProcessWindowFunction,
    Timer,
    WindowContext,
)
from headwater.graph.guarantees import PathGuarantee
from headwater.job.checkpoints.listing import Checkpoint, Checkpoints, checkpoints
from headwater.job.engine import Job
from headwater.job.growth.explanation import StateExplanation
from headwater.job.state_view import StateView
from headwater.job.status import JobStatus, RestartReason
from headwater.retry import Retry
from headwater.savepoints import tables as savepoint
from headwater.savepoints.errors import SavepointError
from headwater.sql.errors import SqlError
from headwater.stored_paths.errors import UnsafePath
from headwater.streams.broadcast import BroadcastStream
from headwater.streams.environment import Environment
from headwater.streams.event_time import EventTimeWarning
from headwater.streams.growth import StateGrowthWarning
from headwater.streams.guarantees import GuaranteeWarning
from headwater.streams.keyed import KeyedStream
from headwater.streams.stream import Step, Stream
from headwater.streams.windowed import WindowedStream
from headwater.watermarks import WatermarkGenerator, Watermarks
from headwater.windows import evictors, triggers
from headwater.windows.assigners import (
    Window,
    WindowAssigner,
    count,
    cumulate,
    global_window,
    processing_time,
    session,
    sliding,
    tumbling,
)
from headwater.windows.composition import both, early, either, repeat, then
from headwater.windows.evictors import Element, Evictor
from headwater.windows.triggers import Trigger, TriggerContext, TriggerResult

__version__: str

__all__ = [
    "DEAD_LETTERS",
    "Aggregate",
    "AggregateFunction",
    "AggregatingState",
    "BroadcastContext",
    "BroadcastFunction",
    "BroadcastStream",
    "Budget",
    "ChangelogError",
    "Checkpoint",
    "Checkpoints",
    "CoProcessFunction",
    "Context",
    "DurationError",
    "Element",
    "Environment",
    "EpochStep",
    "EventLog",
    "EventTimeWarning",
    "Evictor",
    "GraphError",
    "Guarantee",
    "GuaranteeWarning",
    "HeadwaterError",
    "JavaMissing",
    "Job",
    "JobError",
    "JobStatus",
    "KeyedBroadcastFunction",
    "KeyedProcessFunction",
    "KeyedStream",
    "ListState",
    "LogError",
    "MapState",
    "OperatorListState",
    "OutputTag",
    "Pane",
    "PathGuarantee",
    "ProcessFunction",
    "ProcessWindowFunction",
    "PublishError",
    "ReducingState",
    "RestartReason",
    "Retention",
    "Retry",
    "RowError",
    "SavepointError",
    "Schema",
    "SchemaError",
    "SourceError",
    "SqlError",
    "StateBudgetExceeded",
    "StateError",
    "StateExplanation",
    "StateGrowthWarning",
    "StateView",
    "Step",
    "Stream",
    "Timer",
    "Trigger",
    "TriggerContext",
    "TriggerResult",
    "Ttl",
    "UnionListState",
    "UnsafePath",
    "UserCodeError",
    "ValueState",
    "WatermarkGenerator",
    "Watermarks",
    "Window",
    "WindowAssigner",
    "WindowContext",
    "WindowedStream",
    "approx_count_distinct",
    "approx_quantile",
    "avg",
    "both",
    "budget",
    "checkpoints",
    "collect_list",
    "collect_set",
    "connectors",
    "control",
    "count",
    "count_distinct",
    "cumulate",
    "early",
    "either",
    "evictors",
    "first",
    "first_value",
    "global_window",
    "last",
    "last_value",
    "max",
    "max_by",
    "metrics",
    "min",
    "min_by",
    "per_window",
    "processing_time",
    "repeat",
    "restart",
    "savepoint",
    "session",
    "sliding",
    "stddev",
    "sum",
    "testing",
    "then",
    "triggers",
    "ttl",
    "tumbling",
    "var",
]
