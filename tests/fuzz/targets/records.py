"""Records of a changelog, one after the other, as the state of a level is brought up to date from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.byte_mutations import mutated
from tests.fuzz.target import Target, expect

import headwater as hw
from headwater.data.batch import Batch, timestamp_array
from headwater.data.rows import encode_rows
from headwater.data.schema import Schema
from headwater.plan.plan import plan_job
from headwater.spark.ascii import to_ascii
from headwater.spark.records import HEAD, ReadRecords, as_bytes
from headwater.state.changelog import MemoryRecordStore, RecordStore, append, catch_up
from headwater.task.host import LevelHost
from headwater.task.outlet import Outlet
from headwater.task.payload import EpochFacts

_ROWS = Schema.of("k string, n int")


class _Keeper(hw.KeyedProcessFunction):
    total = hw.ValueState("decimal(10,2)")
    seen = hw.ListState("string")
    by = hw.MapState("int", "double")

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.total.set(event.n)
        self.seen.add(event.k)
        self.by.put(event.n, 0.5)
        ctx.timers.event_time(1_000 + event.n)
        return iter(())


class _Stored(Target):
    """Three epochs, of which the last one is unaligned and leaves rows in flight."""

    subjects = ("stored state",)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        env = hw.Environment("fuzz", engine="local", parallelism=1)
        keyed = env.from_rows([], _ROWS).key_by("k")
        keyed.process(_Keeper(), "k string").sink(hw.connectors.memory())
        self._plan = plan_job(env.graph, 1, 128)
        host, outlet = LevelHost(self._plan, 1, 0), Outlet.behind(self._plan, self._plan.sources()[0])
        self._store = MemoryRecordStore()
        for epoch in range(3):
            head = catch_up(host, self._store, "here")
            outlet.begin(EpochFacts(epoch, 50, 0 if epoch == 2 else None), "rows/0")
            rows = [(f"k{n % 7}", n + epoch) for n in range(12)]
            outlet.emit(None, Batch(encode_rows(rows, _ROWS.arrow, "rows"), timestamp_array(range(12))))
            host.run([data for _, data in outlet.finish(epoch * 10)])
            append(host, self._store, head, f"token {epoch}")
        self._records = {sequence: self._store.read(sequence) or b"" for sequence in (1, 2, 3)}
        self._dump = self._dumped(self._store)

    def _dumped(self, store: RecordStore) -> dict[object, object]:
        host = LevelHost(self._plan, 1, 0)
        catch_up(host, store, "level 1")
        found: dict[object, object] = {place: table.dump().to_pylist() for place, table in host.tables().items()}
        host.close()
        return found


class Records(_Stored):
    """One of the records is damaged."""

    name = "changelog"

    def whole(self) -> tuple[int, bytes]:
        return 1, self._records[1]

    def mutant(self, random: Random) -> tuple[int, bytes]:
        """Never another whole record: nobody but Spark's store puts one in the place of another."""
        sequence = random.choice(list(self._records))
        found = self._records[sequence]
        while found in self._records.values():
            found = mutated(random, self._records[sequence], list(self._records.values()))
        return sequence, found

    def read(self, artefact: tuple[int, bytes]) -> None:
        sequence, record = artefact
        store = self._store.copy()
        store.write(sequence, store.token(sequence) or "", record)
        expect(self._dumped(store), self._dump, "the state")


class Pieces(_Stored):
    """As Spark's store keeps them, as text: the head, and pieces with the token of the attempt that wrote them.

    One is lost, damaged, or in the place of another one.
    """

    name = "pieces"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        pieces: dict[int, bytes | memoryview] = {}
        store = ReadRecords(pieces)
        for sequence in (1, 2, 3):
            store.write(sequence, f"{sequence:032d}", self._store.read(sequence) or b"")
        head = self._store.head()
        assert head is not None
        store.set_head(replace(head, token=f"{3:032d}"))
        self._pieces = {number: to_ascii(bytes(piece)).encode() for number, piece in pieces.items()}

    def whole(self) -> dict[int, bytes]:
        return self._pieces

    def mutant(self, random: Random) -> dict[int, bytes]:
        number = random.choice([HEAD, HEAD, *self._pieces])
        if random.random() < 0.03:
            return {at: piece for at, piece in self._pieces.items() if at != number or at == HEAD}
        if number != HEAD and random.random() < 0.05:
            return {**self._pieces, number: self._pieces[random.choice([at for at in self._pieces if at != number])]}
        found = self._pieces[number]
        while found == self._pieces[number]:
            found = mutated(random, self._pieces[number], list(self._pieces.values()))
        return {**self._pieces, number: found}

    def read(self, artefact: dict[int, bytes]) -> None:
        stored = {number: as_bytes(number, piece.decode("latin-1")) for number, piece in artefact.items()}
        expect(self._dumped(ReadRecords(stored)), self._dump, "the state")
