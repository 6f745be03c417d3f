"""Headwater: stateful stream processing with Flink's programming model, in Python, on Spark Structured Streaming."""

from headwater import connectors, testing
from headwater.descriptors import AggregatingState, ListState, MapState, ReducingState, ValueState
from headwater.errors import (
    ChangelogError,
    DurationError,
    GraphError,
    HeadwaterError,
    JavaMissing,
    JobError,
    LogError,
    PublishError,
    RowError,
    SchemaError,
    SourceError,
    StateError,
    UserCodeError,
)
from headwater.eventlog import EventLog, Retention
from headwater.functions import AggregateFunction, Context, KeyedProcessFunction, OutputTag, ProcessFunction, Timer
from headwater.runtime.engine import Job, JobStatus
from headwater.runtime.steps import EpochStep
from headwater.schema import Schema
from headwater.streams.environment import Environment
from headwater.streams.stream import KeyedStream, Step, Stream
from headwater.watermarks import WatermarkGenerator, Watermarks

__version__ = "0.1.0"

__all__ = [
    "AggregateFunction",
    "AggregatingState",
    "ChangelogError",
    "Context",
    "DurationError",
    "Environment",
    "EpochStep",
    "EventLog",
    "GraphError",
    "HeadwaterError",
    "JavaMissing",
    "Job",
    "JobError",
    "JobStatus",
    "KeyedProcessFunction",
    "KeyedStream",
    "ListState",
    "LogError",
    "MapState",
    "OutputTag",
    "ProcessFunction",
    "PublishError",
    "ReducingState",
    "Retention",
    "RowError",
    "Schema",
    "SchemaError",
    "SourceError",
    "StateError",
    "Step",
    "Stream",
    "Timer",
    "UserCodeError",
    "ValueState",
    "WatermarkGenerator",
    "Watermarks",
    "connectors",
    "testing",
]
