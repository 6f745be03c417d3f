"""topic.json: what a topic is. It is written once, whole; a folder without it is not a topic."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.durable import write_atomically
from headwater.eventlog.arguments import whole
from headwater.eventlog.errors import LogArgument, LogCorrupt, LogFormatUnknown
from headwater.eventlog.retention import Retention

if TYPE_CHECKING:
    from pathlib import Path

FILE_NAME = "topic.json"
FORMAT = 1
_CHECK = "crc32"
"""Of all other members; a topic that was made before there was one is without."""
_MEMBERS = {"format", "partitions", "segment_bytes", "retention", "fields", "arrow_schema_base64"}
_UNREADABLE = (
    AttributeError,
    LookupError,
    LogArgument,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
    pa.ArrowException,
)
"""What comes of values that are not what they should be."""


@dataclass(frozen=True)
class TopicDescriptor:
    """The settings of a topic, fixed when it is created."""

    schema: pa.Schema
    partitions: int
    segment_bytes: int
    retention: Retention

    def __post_init__(self) -> None:
        _check_schema(self.schema)
        whole("partitions", self.partitions, least=1)
        whole("segment_bytes", self.segment_bytes, least=1)

    def write(self, folder: Path) -> None:
        """Create `folder`'s topic.json. The schema is kept twice: exact for us, readable for people."""
        content = {
            "format": FORMAT,
            "partitions": self.partitions,
            "segment_bytes": self.segment_bytes,
            "retention": {"max_bytes": self.retention.max_bytes, "max_age_ms": self.retention.max_age_ms},
            "fields": _readable(self.schema),
            "arrow_schema_base64": base64.b64encode(self.schema.serialize().to_pybytes()).decode("ascii"),
        }
        content[_CHECK] = _summed(content)
        write_atomically(folder / FILE_NAME, (json.dumps(content, indent=2) + "\n").encode())

    @classmethod
    def read(cls, folder: Path) -> TopicDescriptor:
        """Load it; FileNotFoundError if `folder` is not a topic."""
        path = folder / FILE_NAME
        data = path.read_bytes()
        try:
            content = json.loads(data)
            found = content["format"]
            if found != FORMAT:
                raise LogFormatUnknown.of(path, found, FORMAT)
            is_whole = _CHECK not in content or content.pop(_CHECK) == _summed(content)
            if not is_whole or set(content) != _MEMBERS:
                raise ValueError("its checksum does not fit")
            schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(content["arrow_schema_base64"], validate=True)))
            if content["fields"] != _readable(schema):
                raise ValueError("it has two schemas, and they differ")
            return cls(schema, content["partitions"], content["segment_bytes"], Retention(**content["retention"]))
        except LogFormatUnknown:
            raise
        except _UNREADABLE as error:
            raise LogCorrupt.descriptor(path, f"{type(error).__name__}: {error}") from error


def _readable(schema: pa.Schema) -> list[dict[str, object]]:
    """The schema for people, and to find out whether the exact one was damaged."""
    return [{"name": field.name, "type": str(field.type), "nullable": field.nullable} for field in schema]


def _summed(content: dict[str, object]) -> int:
    return zlib.crc32(json.dumps(content, sort_keys=True, separators=(",", ":")).encode())


def _check_schema(schema: pa.Schema) -> None:
    if not isinstance(schema, pa.Schema) or len(schema) == 0:
        raise LogArgument.of("schema", "a pyarrow.Schema with at least one field", schema)
    if len(set(schema.names)) != len(schema.names):
        raise LogArgument.of("schema", "field names that differ from each other", schema.names)
    for field in schema:
        if _holds_dictionary(field.type):
            # A dictionary travels in messages of its own, which a frame on its own could not be read without.
            raise LogArgument.of(
                f"schema field {field.name!r}", "a type without dictionary encoding (give the value type)", field.type
            )


def _holds_dictionary(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return True
    if isinstance(kind, pa.BaseExtensionType):
        return _holds_dictionary(kind.storage_type)
    return any(_holds_dictionary(kind.field(i).type) for i in range(kind.num_fields))
