"""The changelog: what changed in an epoch as bytes, and how a working copy is brought to the committed version.

A record is a delta, a base, or a delta with parts of a base: a large base is written over several epochs, and counts when
its last part is there. Records are numbered; a worker's copy is valid only when its token is the one written by the attempt
that committed. A copy that is behind reads the records it lacks, any other copy is rebuilt from the base.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Protocol

import pyarrow as pa

from headwater.errors import ChangelogError
from headwater.state.slices import FORM, Slice
from headwater.versioned import Versioned

MAX_PIECE_BYTES = 4 << 20
"""Spark's state calls take 20-50 ms for 4 MiB and grow faster than the size beyond it."""
COMPACT_FROM_BYTES = 1 << 20
"""Below this a rebuild is cheaper than a compaction."""
COMPACT_FACTOR = 3
"""How many times the base the deltas may grow to: a compaction writes the base once for three times its size in deltas."""
COMPACT_AFTER_RECORDS = 4096
"""A rebuild reads records one by one; more than this many make it slow whatever their size."""
_REMOVED_AT_ONCE = 8
"""How many old records an epoch drops when a base was written in parts: each takes two calls of the store."""

_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")
"""A byte costs more on its way into the state store than LZ4 takes to save it."""
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


def _dumped_bytes(record: bytes) -> int:
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


@dataclass(frozen=True)
class Head(Versioned):
    """The committed version: the newest record, the token of its writer, and what a rebuild has to read."""

    FORMAT: ClassVar[int] = 3

    sequence: int
    token: str
    base: int
    """The first record that a rebuild reads."""
    base_bytes: int
    delta_bytes: int
    parts: Sequence[int] = ()
    """The records that have the parts of the base, in order; none where record `base` is all of it."""
    next_parts: Sequence[int] = ()
    """Those of the parts of the next base that are there already."""
    next_count: int = 0
    """How many parts the next base is to have; 0 while none is written."""
    next_base_bytes: int = 0
    next_delta_bytes: int = 0
    """What was written beside the next base's parts since its first one."""
    oldest: int = 0
    """The oldest record that is still there, where some before the base are; else 0."""
    form: int = 1
    """How the base is cut into parts."""
    next_form: int = 1

    def taken(self, sequence: int) -> Slice | None:
        """What a rebuild takes of a record: of which parts this is the base, before which the changes of parts count.

        None where the changes of all parts do, or the record is all of the base.
        """
        if not self.parts or self.parts[-1] < sequence:
            return None
        first = sum(one < sequence for one in self.parts)
        return Slice(first, first + sum(one == sequence for one in self.parts), len(self.parts), self.form)


class RecordStore(Protocol):
    """Where records live; all calls of an epoch take effect together when the epoch commits."""

    def head(self) -> Head | None:
        """The committed head."""

    def set_head(self, head: Head) -> None:
        """Move the head."""

    def token(self, sequence: int) -> str | None:
        """The token of a record's writer, or None when there is no such record."""

    def read(self, sequence: int) -> bytes | None:
        """A record."""

    def write(self, sequence: int, token: str, record: bytes) -> None:
        """Add a record."""

    def remove(self, sequence: int) -> None:
        """Drop a record."""


class WorkingCopy(Protocol):
    """State in a worker that can be made current."""

    sequence: int
    """The newest record applied; 0 when there is none."""
    token: str | None
    """The token of that record; None when the copy cannot be trusted."""

    def reset(self) -> None:
        """Become empty."""

    def apply(self, record: bytes, taken: Slice | None = None) -> None:
        """Apply the changes of one record, or its base.

        Of `taken`: take the parts of the base that fall into it, and the changes of keys that fall into parts before it.
        """

    def delta(self, part: Slice | None = None) -> bytes:
        """What changed since the last record, as a record; with a part of a base, if one is asked for."""

    def base(self) -> bytes:
        """Everything, as a record; what changed is part of it."""

    def base_parts(self) -> int:
        """In how many parts a base is best written."""


def catch_up(copy: WorkingCopy, store: RecordStore, where: str) -> Head | None:
    """Bring a working copy to the committed version, which is returned, reading no more than it lacks."""
    head = store.head()
    if head is not None and copy.token == head.token:
        return head
    if head is None:
        copy.reset()
        copy.sequence, copy.token = 0, None
        return None
    behind = copy.token is not None and head.base <= copy.sequence <= head.sequence
    if behind and store.token(copy.sequence) == copy.token:
        first = copy.sequence + 1
    else:
        copy.reset()
        first = head.base
    copy.token = None
    for sequence in range(first, head.sequence + 1):
        record = store.read(sequence)
        if record is None:
            raise ChangelogError.missing_sequence(where, sequence)
        taken = None if first != head.base else head.taken(sequence)
        try:
            if taken is None:
                copy.apply(record)
            else:
                copy.apply(record, taken)
        except ChangelogError as error:
            raise error.in_record(where, sequence) from None
    copy.sequence, copy.token = head.sequence, head.token
    return head


@dataclass(frozen=True)
class Written:
    """What an epoch added to a changelog, and what a rebuild has to read since."""

    record: bytes
    stored_bytes: int


def append(copy: WorkingCopy, store: RecordStore, head: Head | None, token: str) -> Written:
    """Write what changed since `head`; when the deltas have outgrown the base, write a new base: at once, or in parts."""
    if head is None:
        record = copy.base()
        after = Head(1, token, 1, len(record), 0)
    else:
        if not head.next_count and is_compaction_due(head) and (count := copy.base_parts()) > 1:
            head = replace(head, next_count=count, next_form=FORM)
        after, record = _appended(copy, head, token)
        for old in range(head.oldest or head.base, after.oldest or after.base):
            store.remove(old)
    store.write(after.sequence, token, record)
    store.set_head(after)
    copy.sequence, copy.token = after.sequence, token
    return Written(record, after.base_bytes + after.delta_bytes)


def _appended(copy: WorkingCopy, head: Head, token: str) -> tuple[Head, bytes]:
    """The next record, and the head with it."""
    sequence = head.sequence + 1
    if not head.next_count and is_compaction_due(head):
        record = copy.base()
        return Head(sequence, token, sequence, len(record), 0), record
    part = _next_part(head)
    record = copy.delta() if part is None else copy.delta(part)
    after = replace(head, sequence=sequence, token=token, delta_bytes=head.delta_bytes + len(record))
    if part is not None:
        dumped = _dumped_bytes(record)
        after = replace(
            after,
            next_parts=[*head.next_parts, *[sequence] * (part.stop - part.first)],
            next_base_bytes=head.next_base_bytes + dumped,
            next_delta_bytes=head.next_delta_bytes + len(record) - dumped,
        )
        if part.stop == part.count:
            after = Head(
                sequence,
                token,
                after.next_parts[0],
                after.next_base_bytes,
                after.next_delta_bytes,
                parts=after.next_parts,
                oldest=head.oldest or head.base,
                form=head.next_form,
            )
    if after.oldest:
        oldest = min(after.oldest + _REMOVED_AT_ONCE, after.base)
        after = replace(after, oldest=0 if oldest == after.base else oldest)
    return after, record


def _next_part(head: Head) -> Slice | None:
    """What is written next of the base in the making, if one is: more at a time where epochs change much."""
    if not head.next_count:
        return None
    usual_bytes = head.delta_bytes // max(head.sequence - head.base, 1)
    parts = min(1 + head.next_count * usual_bytes // max(head.base_bytes, 1), head.next_count)
    first = len(head.next_parts)
    return Slice(first, min(first + parts, head.next_count), head.next_count, head.next_form)


def is_compaction_due(head: Head) -> bool:
    """Whether the records since the base have come to cost more to read than the base itself."""
    if head.sequence - head.base >= COMPACT_AFTER_RECORDS:
        return True
    return head.delta_bytes >= max(COMPACT_FACTOR * head.base_bytes, COMPACT_FROM_BYTES)


def pieces(record: bytes) -> list[bytes]:
    """A record cut into pieces that a store takes well; at least one."""
    return [record[at : at + MAX_PIECE_BYTES] for at in range(0, len(record), MAX_PIECE_BYTES)] or [b""]


class MemoryRecordStore:
    """Records in a dictionary, for the local engine and the harness."""

    def __init__(self) -> None:
        self._head: Head | None = None
        self._records: dict[int, tuple[str, bytes]] = {}

    def head(self) -> Head | None:
        return self._head

    def set_head(self, head: Head) -> None:
        self._head = head

    def token(self, sequence: int) -> str | None:
        found = self._records.get(sequence)
        return found[0] if found else None

    def read(self, sequence: int) -> bytes | None:
        found = self._records.get(sequence)
        return found[1] if found else None

    def write(self, sequence: int, token: str, record: bytes) -> None:
        self._records[sequence] = (token, record)

    def remove(self, sequence: int) -> None:
        self._records.pop(sequence, None)

    def copy(self) -> MemoryRecordStore:
        """The same records in a store that stays as it is."""
        other = MemoryRecordStore()
        other._head, other._records = self._head, dict(self._records)
        return other


class PendingRecords:
    """What an epoch writes to a store, kept back until the epoch is committed; reads see what is committed."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._calls: list[Callable[[], None]] = []

    def head(self) -> Head | None:
        return self._store.head()

    def set_head(self, head: Head) -> None:
        self._calls.append(partial(self._store.set_head, head))

    def token(self, sequence: int) -> str | None:
        return self._store.token(sequence)

    def read(self, sequence: int) -> bytes | None:
        return self._store.read(sequence)

    def write(self, sequence: int, token: str, record: bytes) -> None:
        self._calls.append(partial(self._store.write, sequence, token, record))

    def remove(self, sequence: int) -> None:
        self._calls.append(partial(self._store.remove, sequence))

    def commit(self) -> None:
        """Let the writes take effect."""
        for call in self._calls:
            call()
        self._calls.clear()
