"""The changelog: what changed in an epoch as bytes, and how a working copy is brought to the committed version.

A record is a delta, a base, or a delta with parts of a base: a large base is written over several epochs, and counts when
its last part is there; but the first one, without which there is nothing, is written at once, in several records. Records
are numbered; a worker's copy is valid only when its token is the one written by the attempt that committed. A copy that is
behind reads the records it lacks, any other copy is rebuilt from the base.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Protocol

from headwater.errors import ChangelogError
from headwater.state.records import dumped_bytes, sizes
from headwater.state.slices import FORM, Slice
from headwater.versioned import Versioned

MAX_PIECE_BYTES = 1 << 19
"""Spark copies a piece some ten times on its way, as one object each: larger ones are a burden to its garbage collector."""
FIRST_RECORD_BYTES = 4 << 20
"""About how large the records of the first base are: fewer would be more calls of the store, more would be held at once."""
COMPACT_FROM_BYTES = 1 << 20
"""Below this a rebuild is cheaper than a compaction."""
COMPACT_FACTOR = 3
"""How many times the base the deltas may grow to: a compaction writes the base once for three times its size in deltas."""
COMPACT_AFTER_RECORDS = 4096
"""A rebuild reads records one by one; more than this many make it slow whatever their size."""
_FIRST = 1
"""The number of the first record."""
_REMOVED_AT_ONCE = 8
"""How many records an epoch drops of those before a base: each takes two calls of the store."""


@dataclass(frozen=True)
class Head(Versioned):
    """The committed version: the newest record, the token of its writer, and what a rebuild has to read."""

    FORMAT: ClassVar[int] = 5

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

    @property
    def first_there(self) -> int:
        """The oldest record that is still there."""
        return self.oldest or self.base

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

    def delta(self, parts: Callable[[float], Slice] | None = None) -> bytes:
        """What changed since the last record, as a record; with parts of a base, given what share of the entries changed."""

    def base(self, part: Slice | None = None) -> bytes:
        """Everything, as a record, or a part of it that is asked for. What changed is in a whole base, and not told again."""

    def forget_changes(self) -> None:
        """Take what changed as told: a base in parts is to come."""

    def base_parts(self) -> int:
        """In how many parts a base is best written, by how many rows it has."""


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
        _take_over(copy, store, sequence, None if first != head.base else head.taken(sequence), where)
    copy.sequence, copy.token = head.sequence, head.token
    return head


def _take_over(copy: WorkingCopy, store: RecordStore, sequence: int, taken: Slice | None, where: str) -> None:
    """Apply a record, which nobody holds any more when the next one is read."""
    record = store.read(sequence)
    if record is None:
        raise ChangelogError.missing_sequence(where, sequence)
    try:
        if taken is None:
            copy.apply(record)
        else:
            copy.apply(record, taken)
    except ChangelogError as error:
        raise error.in_record(where, sequence) from None


@dataclass(frozen=True)
class Written:
    """What an epoch added to a changelog, by step and state, and what a rebuild has to read since."""

    added_bytes: Mapping[str, Mapping[str, int]]
    stored_bytes: int


def append(copy: WorkingCopy, store: RecordStore, head: Head | None, token: str) -> Written:
    """Write what changed since `head`; when the deltas have outgrown the base, write a new base: at once, or in parts."""
    if head is None:
        after, added = _begun(copy, store, token)
    else:
        if not head.next_count and is_compaction_due(head) and (count := copy.base_parts()) > 1:
            head = replace(head, next_count=count, next_form=FORM)
        after, record = _appended(copy, head, token)
        for old in range(head.first_there, after.first_there):
            store.remove(old)
        store.write(after.sequence, token, record)
        added = sizes(record)
    store.set_head(after)
    copy.sequence, copy.token = after.sequence, token
    return Written(added, after.base_bytes + after.delta_bytes)


def _begun(copy: WorkingCopy, store: RecordStore, token: str) -> tuple[Head, dict[str, dict[str, int]]]:
    """Write the first base; gives the head, and what was added."""
    added: dict[str, dict[str, int]] = {}
    parts: list[int] = []
    sequence, base_bytes = 0, 0
    for sequence, (count, record) in enumerate(_first_base(copy), _FIRST):
        store.write(sequence, token, record)
        parts += [sequence] * count
        base_bytes += len(record)
        for uid, states in sizes(record).items():
            known = added.setdefault(uid, {})
            known.update({state: known.get(state, 0) + size for state, size in states.items()})
    if not parts:
        return Head(sequence, token, _FIRST, base_bytes, 0), added
    return Head(sequence, token, _FIRST, base_bytes, 0, parts=parts, form=FORM), added


def _first_base(copy: WorkingCopy) -> Iterator[tuple[int, bytes]]:
    """The records of the first base, with how many parts each has: none where the only record is all of it.

    Each has as many parts as fit by what the last one took, but four times as many at most: that one may have had next to
    nothing.
    """
    copy.forget_changes()
    count = copy.base_parts()
    if count == 1:
        yield 0, copy.base()
        return
    part = Slice(0, 1, count, FORM)
    while part.first < count:
        record, width = copy.base(part), part.stop - part.first
        yield width, record
        fitting = min(max(width * FIRST_RECORD_BYTES // len(record), 1), 4 * width)
        part = replace(part, first=part.stop, stop=min(part.stop + fitting, count))


def _appended(copy: WorkingCopy, head: Head, token: str) -> tuple[Head, bytes]:
    """The next record, and the head with it, which leaves out some records that a base made needless."""
    sequence = head.sequence + 1
    if not head.next_count and is_compaction_due(head):
        record = copy.base()
        after = Head(sequence, token, sequence, len(record), 0, oldest=head.first_there)
    else:
        after, record = _with_delta(copy, head, sequence, token)
    oldest = min(after.first_there + _REMOVED_AT_ONCE, after.base)
    return replace(after, oldest=0 if oldest == after.base else oldest), record


def _with_delta(copy: WorkingCopy, head: Head, sequence: int, token: str) -> tuple[Head, bytes]:
    """A delta, with parts of the base in the making if there is one, and the head with it."""
    next_parts = _NextParts(head) if head.next_count else None
    record = copy.delta(next_parts)
    after = replace(head, sequence=sequence, token=token, delta_bytes=head.delta_bytes + len(record))
    if next_parts is not None:
        part, dumped = next_parts.chosen, dumped_bytes(record)
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
                oldest=head.first_there,
                form=head.next_form,
            )
    return after, record


class _NextParts:
    """Which parts an epoch writes of the base in the making: as many entries as it changes, and one part at least.

    So no epoch writes much more than it changes, and the base is whole before as much has changed as there is.
    """

    def __init__(self, head: Head) -> None:
        self.chosen = Slice(len(head.next_parts), len(head.next_parts) + 1, head.next_count, head.next_form)

    def __call__(self, changed_share: float) -> Slice:
        """Choose them, given what share of all entries the epoch changed."""
        first, count = self.chosen.first, self.chosen.count
        self.chosen = replace(self.chosen, stop=min(first + 1 + int(count * changed_share), count))
        return self.chosen


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
