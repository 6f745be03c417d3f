"""The words that settings are chosen from, as types: an editor offers them, and a type checker knows a wrong one.

What takes a setting looks at the word itself too; tests keep the two in step.
"""

from __future__ import annotations

from typing import Literal

EngineName = Literal["spark", "local"]
LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["text", "json"]
Checkpointing = Literal["exactly_once", "at_least_once"]
StateBackendName = Literal["memory", "disk"]
TimeDomain = Literal["event", "processing"]
OnFull = Literal["warn", "fail", "spill"]
TtlUpdate = Literal["write", "read_and_write"]

RegularJoinHow = Literal["inner", "left", "right", "full"]
TemporalJoinHow = Literal["inner", "left"]
WindowJoinHow = Literal["inner", "left", "right", "full", "semi", "anti"]
LookupJoinHow = Literal["inner", "left"]
PanesMode = Literal["accumulating", "discarding", "retracting"]

FileFormat = Literal["parquet", "json", "csv"]
FileOrder = Literal["modified", "name"]
RecordFormat = Literal["json", "csv", "raw"]
BadRecords = Literal["fail", "dead_letters"]
LostRecords = Literal["fail", "skip"]
Delivery = Literal["exactly_once", "at_least_once"]
SinkMode = Literal["append", "upsert"]
StartName = Literal["earliest", "latest"]

IntType = Literal["tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long"]
FloatType = Literal["float", "real", "double"]
StringType = Literal["string"]
BooleanType = Literal["boolean"]
TimestampType = Literal["timestamp", "timestamp_ltz", "timestamp_ntz"]
"""DDL types by what their values are in Python: state of these types is typed."""
Explained = Literal["plan", "state", "changelog"]

MeasureKind = Literal["counter", "gauge", "meter", "histogram"]
OverSubtasks = Literal["sum", "min", "max"]

Variation = Literal["again", "slices", "arrival", "crashes", "savepoints"]
"""What `hw.testing.verify` varies."""
