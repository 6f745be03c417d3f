"""Payloads: what travels between levels. A small header, then the rows as an Arrow stream.

    magic 2s | version u8 | level u8 | header bytes u32 | check u32 | header | rows

Spark sees payloads as opaque bytes, few and large. The level a payload is for stands in its first bytes, so that a level
can pass on what is meant for a deeper one without reading it. The check covers level, header and the number of bytes that
follow. It leaves the bytes of the rows to Spark, which sums up what it moves; rows in flight, which are stored as payloads
of version 4 or later, are in records that are summed up as a whole.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from headwater.data.batch import Batch
from headwater.data.row_kinds import ROW_KIND, read_kinds
from headwater.errors import ChangelogError

DRIVER_LEVEL = 255
"""The level of reports to the driver."""
MAX_PAYLOAD_BYTES = 4 << 20

_PREFIX = struct.Struct("<2sBBI")
_CHECK = struct.Struct("<I")
_COVERED = struct.Struct("<BQ")
_MAGIC, _VERSION, _UNCHECKED = b"HW", 5, 4
_TIMESTAMP, _KEY, _KIND = "__ts", "__key", "__kind"


@dataclass(frozen=True, slots=True)
class EpochFacts:
    """What every task of an epoch must agree on; logged with the offsets, so the same on replay."""

    epoch: int
    now_ms: int
    unaligned_ms: int | None = None
    """About how long a step may work on rows, the others wait; None for an aligned epoch, after which no row waits."""


@dataclass(frozen=True, slots=True)
class Payload:
    """Rows, or just a watermark, from one channel for one port."""

    level: int
    port: int
    channel: str
    sequence: int
    facts: EpochFacts
    watermark_ms: int | None
    batch: Batch | None
    idle: bool = False
    """Said with a watermark: whether the channel is idle, so that the receiver does not wait for it."""
    combined: bool = False
    """Whether the rows went through the combiner of the step they are for."""
    side: int = 0
    """Which input of the step they are for."""


def level_of(data: bytes) -> int:
    """The level a payload is for."""
    return data[3]


def encode_payload(payload: Payload) -> bytes:
    """The payload as bytes; the same payload gives the same bytes."""
    facts = payload.facts
    channel = [payload.port, payload.channel, payload.sequence]
    unaligned = [] if facts.unaligned_ms is None else [facts.unaligned_ms]
    flags = [payload.idle, payload.combined, payload.side]
    header = json.dumps([*channel, facts.epoch, facts.now_ms, payload.watermark_ms, *flags, *unaligned]).encode()
    body = b"" if payload.batch is None else _encode_batch(payload.batch)
    return b"".join((_prefix(payload.level, header, len(body)), header, body))


def decode_payload(data: bytes | memoryview) -> Payload:
    """The reverse of `encode_payload`; the rows are read in place."""
    level, header, at = _opened(data)
    try:
        port, channel, sequence, epoch, now_ms, watermark_ms, *rest = json.loads(header)
        flags, unaligned = rest[:3], rest[3:]
        batch = _decode_batch(pa.py_buffer(data).slice(at)) if at < len(data) else None
    except (ValueError, TypeError, OSError, RecursionError) as error:  # Arrow's errors are ValueErrors
        raise ChangelogError.bad_payload(str(error)) from None
    return Payload(level, port, channel, sequence, EpochFacts(epoch, now_ms, *unaligned), watermark_ms, batch, *flags)


def _prefix(level: int, header: bytes, body_bytes: int) -> bytes:
    """What stands in front of a header."""
    check = zlib.crc32(header, zlib.crc32(_COVERED.pack(level, body_bytes)))
    return _PREFIX.pack(_MAGIC, _VERSION, level, len(header)) + _CHECK.pack(check)


def _opened(data: bytes | memoryview) -> tuple[int, bytes, int]:
    """The level and the header of a payload, and where its rows begin."""
    if len(data) < _PREFIX.size + _CHECK.size:
        raise ChangelogError.bad_payload(f"they have {len(data)} bytes")
    magic, version, level, length = _PREFIX.unpack_from(data)
    if magic != _MAGIC or version not in (_VERSION, _UNCHECKED):
        raise ChangelogError.bad_payload(f"they start with {bytes(data[:3])!r}")
    at = _PREFIX.size if version == _UNCHECKED else _PREFIX.size + _CHECK.size
    header = bytes(data[at : at + length])
    at += length
    if at > len(data) or (version == _VERSION and data[: at - length] != _prefix(level, header, len(data) - at)):
        raise ChangelogError.bad_payload("their checksum does not fit")
    return level, header, at


def with_kinds_apart(payload: Payload, step: str) -> Payload:
    """A payload of a changelog: one that was in flight since kinds were a column of its rows has them apart from there."""
    batch = payload.batch
    if batch is None or batch.kinds is not None or ROW_KIND not in batch.table.column_names:
        return payload
    rows = batch.table.drop_columns([ROW_KIND])
    return replace(payload, batch=Batch(rows, batch.timestamps, batch.key, read_kinds(batch.table, step)))


def encode_report(report: dict[str, Any]) -> bytes:
    """A task's report to the driver."""
    header = json.dumps(report, sort_keys=True).encode()
    return _prefix(DRIVER_LEVEL, header, 0) + header


def decode_report(data: bytes) -> dict[str, Any]:
    """The reverse of `encode_report`."""
    _, header, _ = _opened(data)
    try:
        return json.loads(header)  # type: ignore[no-any-return]
    except (ValueError, RecursionError) as error:
        raise ChangelogError.bad_payload(str(error)) from None


def _encode_batch(batch: Batch) -> pa.Buffer:
    table = batch.table.append_column(_TIMESTAMP, pa.array(batch.timestamps))
    if batch.key is not None:
        table = table.append_column(_KEY, batch.key)
    if batch.kinds is not None:
        table = table.append_column(_KIND, pa.array(batch.kinds))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return sink.getvalue()


def _decode_batch(buffer: pa.Buffer) -> Batch:
    table = pa.ipc.open_stream(buffer).read_all()
    names = table.column_names
    rows = names.index(_TIMESTAMP)
    beside = {name: table.column(at) for at, name in enumerate(names[rows:], rows)}
    key, kinds = beside.get(_KEY), beside.get(_KIND)
    return Batch(
        table.select(range(rows)),
        beside[_TIMESTAMP].to_numpy(),
        None if key is None else key.chunk(0) if key.num_chunks == 1 else key.combine_chunks(),
        None if kinds is None else kinds.to_numpy(),
    )
