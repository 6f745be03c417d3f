"""Savepoints: damaged by chance, and forged by somebody who sums up again what he has changed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.byte_mutations import mutated
from tests.fuzz.json_mutations import mutated_json
from tests.fuzz.target import Target, expect
from tests.parts.halves import run_epochs

import headwater as hw
from headwater.epoch.offset import Offset
from headwater.plan.plan import plan_job
from headwater.savepoints.files import DESCRIPTION, Savepoint
from headwater.savepoints.fitting import Program, fit
from headwater.savepoints.origin import Origin, begin
from headwater.savepoints.remembered import begin_sources
from headwater.savepoints.renaming import Renaming
from headwater.task.host import LevelHost

_SCHEMA = "k string, n bigint"
_GONE = b"gone"
"""Stands for a file that is not there."""


class _Keeper(hw.KeyedProcessFunction):
    total = hw.ValueState("decimal(10,2)")
    seen = hw.ListState("string")
    by = hw.MapState("int", "double")

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.total.set(event.n)
        self.seen.add(event.k)
        self.by.put(event.n, 0.5)
        ctx.timers.event_time(1_000 + event.n)
        yield (event.k,)


@dataclass(frozen=True)
class _Forged:
    """Files of a savepoint that are not as they were, by name."""

    files: dict[str, bytes]
    is_sealed: bool
    """Whether the checksums fit, so that what is read need not be what was stored."""


class Savepoints(Target):
    name = "savepoint"
    subjects = ("savepoint", "ledger", "state", "step")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._input = folder / "input"
        self._input.mkdir()
        for number in range(4):
            file = self._input / f"{number}.json"
            file.write_text("".join(f'{{"k": "k{n % 3}", "n": {n}}}\n' for n in range(number, number + 5)))
            os.utime(file, ns=(10**18 + number, 10**18 + number))
        self._saved = folder / "saved"
        stopped = run_epochs(self._env(), 2).stop(savepoint=self._saved)
        assert stopped == self._saved
        self._seal({**self._description()["content"], "job_id": "0" * 32})
        self._files = {
            path.relative_to(self._saved).as_posix(): path.read_bytes()
            for path in sorted(self._saved.rglob("*"))
            if path.is_file()
        }
        self._content = json.loads(self._files[DESCRIPTION])["content"]
        env = self._env()
        self._plan = plan_job(env.graph, 2, 128)
        self._program = Program(self._plan)
        self._stored = self._looked_at()

    def _env(self) -> hw.Environment:
        env = hw.Environment("fuzz", engine="local", parallelism=2)
        source = hw.connectors.read_files(self._input, format="json", watch=False, max_files_per_epoch=1)
        rows = env.source(source, _SCHEMA, hw.Watermarks.monotonous("n")).with_uid("rows")
        rows.key_by("k").process(_Keeper(), "k string").with_uid("keeper").sink(hw.connectors.memory()).with_uid("out")
        return env

    def whole(self) -> _Forged:
        return _Forged({}, is_sealed=False)

    def mutant(self, random: Random) -> _Forged:
        names = list(self._files)
        name = random.choice([*names, *[DESCRIPTION] * len(names)])
        others = [content for other, content in self._files.items() if other != name]
        how = random.random()
        if how < 0.05:
            return _Forged({name: _GONE}, is_sealed=False)
        if how < 0.4 or (name != DESCRIPTION and how < 0.7):
            return _Forged({name: mutated(random, self._files[name], others)}, is_sealed=False)
        if name != DESCRIPTION:
            return self._forged_file(name, mutated(random, self._files[name], others))
        text = mutated_json(random, self._content)
        return _Forged({DESCRIPTION: _sealed(text)}, is_sealed=True)

    def _forged_file(self, name: str, content: bytes) -> _Forged:
        text, was = json.dumps(self._content), self._files[name]
        for old, new in (
            (f'"sha256": "{hashlib.sha256(was).hexdigest()}"', f'"sha256": "{hashlib.sha256(content).hexdigest()}"'),
            (f'"size_bytes": {len(was)},', f'"size_bytes": {len(content)},'),
        ):
            text = text.replace(old, new)
        return _Forged({name: content, DESCRIPTION: _sealed(text)}, is_sealed=True)

    def read(self, artefact: _Forged) -> None:
        try:
            for name, content in artefact.files.items():
                if content is _GONE:
                    (self._saved / name).unlink()
                else:
                    (self._saved / name).write_bytes(content)
            found = self._looked_at()
        finally:
            for name in artefact.files:
                (self._saved / name).write_bytes(self._files[name])
        if not artefact.is_sealed:
            expect(found, self._stored, "the savepoint")

    def _looked_at(self) -> dict[object, object]:
        """All that a job that goes on from it gets to see."""
        saved = hw.savepoint.read(self._saved)
        found: dict[object, object] = {state: saved[state].to_arrow().to_pylist() for state in saved}
        found["text"] = (saved.describe(), repr([saved[state].schema for state in saved]))
        savepoint = Savepoint.open(self._saved)
        upgrade = fit(savepoint, self._program, Renaming())
        found["fits"] = str(upgrade)
        if not upgrade.is_possible:
            return found
        origin = Origin.of(savepoint, Renaming())
        sources = self.folder / "sources"
        begin_sources(self._plan, sources, origin, is_new=True)
        found["remembered"] = {path.name: path.read_bytes() for path in sources.rglob("*") if path.is_file()}
        shutil.rmtree(sources)
        found["offset"] = origin.offset(Offset(0, end=False, positions={"rows": {"0": 0}}))
        for subtask in range(2):
            host = LevelHost(self._plan, 1, subtask)
            begin(host, self._plan, subtask, origin)
            found[subtask] = {place: table.dump().to_pylist() for place, table in host.tables().items()}
        return found

    def _description(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self._saved / DESCRIPTION).read_bytes())
        return found

    def _seal(self, content: dict[str, Any]) -> None:
        (self._saved / DESCRIPTION).write_bytes(_sealed(json.dumps(content)))


def _sealed(text: str) -> bytes:
    """A description that says of itself what it must, as far as JSON can be read at all."""
    try:
        whole = json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
    except RecursionError:
        whole = ""
    digest = hashlib.sha256(whole.encode()).hexdigest()
    return f'{{"format": 1, "sha256": "{digest}", "content": {text}}}'.encode()
