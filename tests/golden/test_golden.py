"""Texts and bytes that must not change by accident, as files beside this one.

After a change on purpose, write them anew with `HEADWATER_WRITE_GOLDEN=1 pytest tests/golden` and read the difference in
the commit. A changed `changelog_v2_*.hex` means, unless pyarrow itself has changed how it writes, that stored state of
format version 2 cannot be read any more: raise the version in `state/changelog.py` and add files for it instead, keeping
the old ones readable.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.connectors.contract import Staged
from headwater.connectors.memory import RowsSource
from headwater.data.batch import Batch, timestamp_array
from headwater.data.rows import encode_rows
from headwater.data.schema import Schema
from headwater.epoch.manifest import Manifest, Published
from headwater.epoch.offset import Offset
from headwater.job.checkpoints.history import EpochLine
from headwater.job.checkpoints.replay import PlannedEpoch, Replay
from headwater.job.identity import JobIdentity
from headwater.job.requests import Action, JobAnswer, JobRequest
from headwater.job.status import StepStatus
from headwater.plan.plan import plan_job
from headwater.state import changelog
from headwater.state.records import unpack
from headwater.task.host import LevelHost
from headwater.task.outlet import Outlet
from headwater.task.payload import EpochFacts

HERE = Path(__file__).parent
EVENTS = "user string, amount decimal(10,2), at timestamp, tags array<string>"


def matches_golden(name: str, found: str) -> None:
    path = HERE / name
    if os.environ.get("HEADWATER_WRITE_GOLDEN"):
        path.write_text(found + "\n")
        pytest.skip(f"wrote {name}")
    assert found + "\n" == path.read_text()


class Totals(hw.KeyedProcessFunction):
    total = hw.ValueState("decimal(20,2)")
    tags = hw.MapState("string", "bigint")
    recent = hw.ListState("timestamp")
    late = hw.OutputTag("late", EVENTS)


class PerTag(hw.KeyedProcessFunction):
    largest = hw.ReducingState("bigint", reduce=max)


class Check(hw.ProcessFunction):
    bad = hw.OutputTag("bad", "why string")


def first_letter(row: Any) -> str:
    return str(row.user[:1])


def rich_graph() -> hw.Environment:
    env = hw.Environment("orders", engine="local", parallelism=4, key_groups=64)
    web = env.from_rows([], EVENTS, hw.Watermarks.bounded("at", "5 s"), name="web").with_uid("web")
    shop = env.from_rows([], EVENTS, hw.Watermarks.monotonous("at"), name="shop")
    checked = web.union(shop).where("amount > 0").process(Check(), EVENTS)
    totals = checked.key_by("user").process(Totals(), "user string, tag string, n bigint").with_uid("totals")
    tags = totals.select("tag", "n").key_by("tag", "n").process(PerTag(), "tag string, n bigint")
    letters = checked.key_by(first_letter, type="string").process(PerTag(), "tag string, n bigint", name="letters")
    tags.union(letters).rebalance().map(lambda r: r).sink(hw.connectors.memory(), name="tags").with_uid("tags-out")
    totals.broadcast().filter(lambda r: True).sink(hw.connectors.memory())
    totals.side_output(Totals.late).global_().sink(hw.connectors.memory(), name="late")
    checked.side_output(Check.bad).sink(hw.connectors.console(), name="bad")
    return env


def test_a_rich_graph_describes_itself() -> None:
    matches_golden("describe.txt", rich_graph().describe())


def chosen_graph() -> hw.Environment:
    """A job for which every rule of planning has something to choose."""
    env = hw.Environment("chosen", engine="local", state_backend="disk", checkpointing="at_least_once")
    web = env.from_rows([], EVENTS, hw.Watermarks.monotonous("at"), name="web")
    shop = env.from_rows([], EVENTS, hw.Watermarks.monotonous("at"), name="shop")
    keyed, late = web.key_by("user"), hw.OutputTag("late", "user string")
    tumbling, total = hw.tumbling("10 s"), hw.sum("amount")
    keyed.agg(total=total).sink(hw.connectors.memory(), name="totals")
    keyed.window(tumbling).agg(total=total).with_uid("slices").sink(hw.connectors.memory())
    keyed.window(tumbling).late_to(late).agg(total=total).with_uid("slices-late").sink(hw.connectors.memory())
    keyed.window(hw.count(10)).agg(total=total).with_uid("count").sink(hw.connectors.memory())
    keyed.window(tumbling).trigger(hw.triggers.count(2)).agg(n=hw.count()).with_uid("runs").sink(hw.connectors.memory())
    keyed.window(hw.session("1 min")).agg(n=hw.count()).with_uid("bursts").sink(hw.connectors.memory())
    keyed.window(tumbling).reduce(max).with_uid("elements").sink(hw.connectors.memory())
    pairs = web.join(shop).where("user").equal_to("user").window(tumbling)
    pairs.apply().with_uid("pairs").sink(hw.connectors.memory())
    pairs.evict(hw.evictors.count(3)).apply().with_uid("pairs-evicted").sink(hw.connectors.memory())
    web.rebalance().union(shop).where("amount > 0").with_uid("both").sink(hw.connectors.memory())
    return env


def test_graphs_explain_their_levels_and_what_was_chosen_for_each_step() -> None:
    matches_golden("explain.txt", f"{rich_graph().explain()}\n\n{chosen_graph().explain()}")


class Feed(RowsSource):
    replayable = False

    def describe(self) -> str:
        return "a feed"


async def ask(row: Any) -> Any:
    return row


def test_a_graph_of_many_ends_explains_its_guarantees() -> None:
    env = hw.Environment("orders", job_dir="job")
    schema = hw.Schema.of("user string, n bigint")
    web, shop = env.from_rows([], schema, name="web"), env.source(Feed([[]], schema), schema, name="shop")
    asked = web.map_async(ask).with_uid("asked")
    joined = asked.key_by("user").join_regular(shop.key_by("user"), ttl="1 h", name="joined")
    joined.sink(hw.connectors.files("/out"), name="files")
    joined.sink(hw.connectors.memory(), name="seen")
    asked.side_output(Check.bad).print()
    matches_golden("guarantees.txt", env.explain_guarantees())


class Keeper(hw.KeyedProcessFunction):
    """One of each kind of state, and timers in both domains."""

    value = hw.ValueState("struct<a:decimal(10,2),b:timestamp>")
    list = hw.ListState("string")
    map = hw.MapState("int", "double")
    reducing = hw.ReducingState("bigint", reduce=max)

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        if event.n < 0:
            self.map.remove(3)
            self.list.clear()
            ctx.timers.delete_event_time(100)
        else:
            self.value.set({"a": event.n, "b": event.at})
            self.list.add_all([ctx.key, "x"])
            self.map.put_all({3: 1.5, event.n: -0.25})
            self.reducing.add(event.n)
            ctx.timers.event_time(100)
            ctx.timers.processing_time(200 + event.n)
        return iter(())


def records() -> dict[str, bytes]:
    """The base and the delta of a fixed state: two epochs on one host."""
    from datetime import UTC, datetime

    env = hw.Environment("golden", engine="local", parallelism=1)
    schema = Schema.of("k string, n int, at timestamp")
    env.from_rows([], schema).key_by("k").process(Keeper(), "k string").sink(hw.connectors.memory())
    plan = plan_job(env.graph, 1, 128)
    host, outlet = LevelHost(plan, 1, 0), Outlet.behind(plan, plan.sources()[0])
    at = datetime(1969, 7, 20, 20, 17, 40, tzinfo=UTC)
    found = {}
    for epoch, rows in enumerate([[("a", 1, at), ("ü", 7, None)], [("a", -1, at), ("c", 5, at)]]):
        outlet.begin(EpochFacts(epoch, 50), "rows/0")
        outlet.emit(None, Batch(encode_rows(rows, schema.arrow, "rows"), timestamp_array([10, 20])))
        host.run([data for _, data in outlet.finish(epoch * 10)])
        found["delta" if epoch else "base"] = host.delta() if epoch else host.base()
    return found


def test_stored_texts_are_the_same() -> None:
    """A text that differs is refused: its checksum covers its content and the name of its class."""
    offset = Offset(3, end=False, positions={"rows": {"0": 10}}, now_ms=12)
    shape = {"parallelism": 1, "key groups": 128, "sources": ["rows"], "steps": {"count": {"level": 1}}}
    stored = [
        JobIdentity("counts", "dd13", shape),
        Published(4, end=False, positions={"rows": {"0": 10}}),
        Manifest(4, (Staged("out", "staging/out-4", "out-4.jsonl", 3, 40),), now_ms=12),
        Replay({2: PlannedEpoch(offset, committed=True)}),
        EpochLine(2, 12, 8, offset, {"rows": {"0": 8}}, {"count": StepStatus()}, 99),
        hw.RestartReason(1, 5, 7, "E", "no", None),
        hw.JobStatus("running"),
        JobRequest(Action.STOP),
        JobAnswer(error="no"),
        changelog.Head(3, "0" * 32, 1, 700, 90),
    ]
    matches_golden("stored_texts.txt", "\n".join(record.to_text() for record in stored))


def hexadecimal(record: bytes) -> str:
    text = record.hex()
    return "\n".join(text[at : at + 120] for at in range(0, len(text), 120))


@pytest.mark.parametrize("kind", ["base", "delta"])
def test_records_are_the_same_bytes(kind: str) -> None:
    matches_golden(f"changelog_v2_zstd_{kind}.hex", hexadecimal(records()[kind]))


@pytest.mark.parametrize("version", ["v1", "v2", "v2_zstd"])
def test_stored_records_of_every_version_can_be_read(version: str) -> None:
    """Whatever the bytes written today are, the bytes written then must give the same state."""
    stored = {kind: bytes.fromhex((HERE / f"changelog_{version}_{kind}.hex").read_text()) for kind in ("base", "delta")}
    for kind, record in records().items():
        meta, sections = unpack(stored[kind])
        meta_now, sections_now = unpack(record)
        assert meta == meta_now
        assert [(u, s, t.to_pylist()) for u, s, t in sections] == [(u, s, t.to_pylist()) for u, s, t in sections_now]
