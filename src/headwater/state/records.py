"""The records of a changelog as bytes: what changed in each state, and parts of a base, as columns."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from headwater.errors import ChangelogError

_COMPRESSED = pa.ipc.IpcWriteOptions(compression="zstd")
"""A byte costs more on its way into the state store than Zstandard takes to save it. LZ4, which was used before, leaves twice
as many of numbers and of text; a reader takes either."""
_MAGIC = b"HWCL\x02"
_UNCHECKED = b"HWCL\x01"
"""How records began before they had a checksum, which otherwise follows."""
_CHECK = _LENGTH = struct.Struct("<I")

Section = tuple[str, str, pa.Table]
"""A change table of a step's state: uid, state, table."""


def pack(meta: dict[str, Any], sections: Iterable[Section], dumped: Iterable[Section] | None = None) -> bytes:
    """One record: a checksum of the rest, a JSON header, then the Arrow streams of its sections, and of parts of a base.

    The same input gives the same bytes.
    """
    bodies: list[pa.Buffer] = []
    facts: dict[str, Any] = {"meta": meta, "sections": _listed(sections, bodies)}
    if dumped is not None:
        facts["dumped"] = _listed(dumped, bodies)
    header = json.dumps(facts, sort_keys=True, separators=(",", ":")).encode()
    parts = [_LENGTH.pack(len(header)), header, *bodies]
    check = 0
    for part in parts:
        check = zlib.crc32(part, check)
    return b"".join([_MAGIC, _CHECK.pack(check), *parts])


def _listed(sections: Iterable[Section], bodies: list[pa.Buffer]) -> list[dict[str, Any]]:
    """What a header says of sections, whose bytes are added to others."""
    listed = []
    for uid, state, table in sections:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema, options=_COMPRESSED) as writer:
            writer.write_table(table.combine_chunks())
        bodies.append(sink.getvalue())
        listed.append({"uid": uid, "state": state, "bytes": bodies[-1].size})
    return listed


def unpack(record: bytes) -> tuple[dict[str, Any], Iterator[Section]]:
    """The meta data and sections of a record."""
    header, start = _header(record)
    if record[: len(_MAGIC)] == _MAGIC:
        (check,) = _CHECK.unpack_from(record, len(_MAGIC))
        if zlib.crc32(memoryview(record)[len(_MAGIC) + _CHECK.size :]) != check:
            raise ChangelogError.bad_blob("its checksum does not fit")
    return header["meta"], _sections(pa.py_buffer(record), start, header["sections"])


def dumped_in(record: bytes) -> Iterator[Section]:
    """The parts of a base that a record has, which `unpack` leaves out; it has checked them."""
    header, start = _header(record)
    after = start + sum(section["bytes"] for section in header["sections"])
    return _sections(pa.py_buffer(record), after, header.get("dumped", []))


def sizes(record: bytes) -> dict[str, dict[str, int]]:
    """The bytes of a record's sections, by uid and state."""
    found: dict[str, dict[str, int]] = {}
    header = _header(record)[0]
    for section in [*header["sections"], *header.get("dumped", [])]:
        states = found.setdefault(section["uid"], {})
        states[section["state"]] = states.get(section["state"], 0) + section["bytes"]
    return found


def dumped_bytes(record: bytes) -> int:
    """What the parts of a base take that a record has."""
    return sum(section["bytes"] for section in _header(record)[0].get("dumped", []))


def _header(record: bytes) -> tuple[dict[str, Any], int]:
    """What a record says of itself, and where its sections start."""
    magic = record[: len(_MAGIC)]
    if magic not in (_MAGIC, _UNCHECKED):
        raise ChangelogError.bad_blob(f"it starts with {bytes(magic)!r}, not {_MAGIC!r}")
    at = len(_MAGIC) + (_CHECK.size if magic == _MAGIC else 0)
    start = at + _LENGTH.size
    try:
        (length,) = _LENGTH.unpack_from(record, at)
        header = json.loads(record[start : start + length])
    except (struct.error, ValueError, RecursionError) as error:
        raise ChangelogError.bad_blob(str(error)) from None
    if not isinstance(header, dict) or not {"meta", "sections"} <= set(header):
        raise ChangelogError.bad_blob("its header is not that of a record")
    return header, start + length


def _sections(buffer: pa.Buffer, at: int, listed: list[dict[str, Any]]) -> Iterator[Section]:
    for section in listed:
        try:
            uid, state, size = section["uid"], section["state"], section["bytes"]
        except (KeyError, TypeError) as error:
            raise ChangelogError.bad_blob(f"its header is not that of a record: {error!r}") from None
        try:
            table = pa.ipc.open_stream(buffer.slice(at, size)).read_all()
        except (pa.ArrowException, IndexError, OSError, TypeError) as error:
            raise ChangelogError.bad_blob(f"{uid}, state {state}: {error}") from None
        yield uid, state, table
        at += size
