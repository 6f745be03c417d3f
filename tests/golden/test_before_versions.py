"""What was stored before records had versions is read, and a savepoint of that time is gone on from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.connectors.contract import Staged
from headwater.epoch.manifest import Manifest, Published
from headwater.epoch.offset import Offset, Pace
from headwater.job.checkpoints.history import read_history
from headwater.job.checkpoints.replay import Replay
from headwater.job.identity import JobIdentity
from headwater.job.layout import OutboxLayout
from headwater.job.reading import read_reasons
from headwater.state.changelog import Head

HERE = Path(__file__).parent
LOGGED = (
    '{"epoch": 3, "end": false, "positions": {"rows": {"0": 10}}, "started_ms": 1794830501484, "now_ms": 1794830529076, '
    '"active_ms": {"rows": {"0": 1794830529076}}, "marks": {}}'
)
OFFSET = Offset(
    3,
    end=False,
    positions={"rows": {"0": 10}},
    started_ms=1794830501484,
    now_ms=1794830529076,
    active_ms={"rows": {"0": 1794830529076}},
)
LINE = (
    '{"duration_ms":882,"epoch":2,"offset":'
    + LOGGED
    + ',"starts":{"rows":{"0":8}},"steps":{"count":{"changelog_bytes":'
    '{"@channels":1024,"n":648},"dead_letters":0,"in_flight":0,"late_dropped":4,"rows_in":2,"rows_out":2,"state":{"n":2},'
    '"watermark_ms":8}},"stored_bytes":5684,"time_ms":1794830530443}\n'
)

JOB = """{
  "format": 1,
  "id": "dd13",
  "job": "counts",
  "origin": {"digest": "ab", "epoch": 3, "job_id": "cc", "path": "/saved", "renaming": {"names": []}},
  "shape": {
    "key groups": 128,
    "parallelism": 2,
    "sources": ["rows"],
    "steps": {"count": {"key": "k: string", "level": 1, "states": {"n": ["value", "bigint"]}}}
  }
}"""

HEAD = (
    '{"crc32":3940113327,"base":1,"base_bytes":700,"delta_bytes":90,"form":1,"format":3,"next_base_bytes":0,"next_count":0,'
    '"next_delta_bytes":0,"next_form":1,"next_parts":[],"oldest":0,"parts":[],"sequence":3,'
    '"token":"00000000000000000000000000000000"}'
)


class Count(hw.KeyedProcessFunction):
    n = hw.ValueState("long", default=0)

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.n.set(self.n.get() + 1)
        yield event.k, self.n.get()


def test_a_savepoint_is_gone_on_from(tmp_path: Path) -> None:
    topic = hw.EventLog(tmp_path).create_topic("rows", hw.Schema.of("k string, at long").arrow)
    topic.append(pa.table({"k": [*"ababababab", "a", "b", "c"], "at": list(range(13))}))
    env, sink = hw.Environment("counts", engine="local", parallelism=3), hw.connectors.memory()
    watermarks = hw.Watermarks.monotonous("at").with_idleness("1 min")
    rows = env.source(hw.connectors.log(tmp_path, "rows"), "k string, at long", watermarks).with_uid("rows")
    rows.key_by("k").process(Count(), "k string, n long", name="count").sink(sink).with_uid("out")
    job = env.run(bounded=True, from_=HERE / "savepoint_1")
    assert sorted(sink.rows) == [("a", 6), ("b", 6), ("c", 1)]
    assert job.status().positions == {"rows": {"0": 13}}


@pytest.mark.parametrize(("ttl", "given"), [("5 s", [3, 5]), ("9500 ms", [4, 5]), ("1 h", []), (None, [])])
def test_keys_known_for_a_ttl_that_only_words_tell_are_known_for_another(ttl: str | None, given: list[int]) -> None:
    env, sink = hw.Environment("once", engine="local", max_rows_per_epoch=1), hw.connectors.memory()
    rows = env.from_rows([("a", 1), ("b", 2), ("a", 3), ("a", 4), ("a", 5)], "k string, n long")
    rows.deduplicate("k", ttl=ttl).with_uid("step").sink(sink, name="out")
    times = [1000, 2000, 10_000, 11_000, 30_000]
    env.run(bounded=True, from_=HERE / "savepoint_1_deduplicate", clock=lambda epoch: times[max(0, min(epoch, 4))])
    assert [row.n for row in sink.rows] == given


def test_offsets_are_read_from_the_log_of_an_engine() -> None:
    assert Offset.from_text(LOGGED, "log") == OFFSET
    unaligned = LOGGED[:-1] + ', "pace": {"rows": 4, "paused": true}, "unaligned_ms": 500}'
    read = Offset.from_text(unaligned, "log")
    assert (read.pace, read.unaligned_ms) == (Pace(4, paused=True), 500)


def test_an_offset_is_written_as_it_was_but_for_the_version() -> None:
    """So that an older version finds in the log what it knows."""
    assert OFFSET.to_json() == {
        "format": 1,
        "epoch": 3,
        "end": False,
        "positions": {"rows": {"0": 10}},
        "started_ms": 1794830501484,
        "now_ms": 1794830529076,
        "active_ms": {"rows": {"0": 1794830529076}},
        "marks": {},
    }


def test_a_job_is_known_by_its_note(tmp_path: Path) -> None:
    file = tmp_path / "job.json"
    file.write_text(JOB)
    job = JobIdentity.read(file)
    assert (job.name, job.job_id, job.levels, job.parallelism, job.key_groups) == ("counts", "dd13", 1, 2, 128)
    assert (job.first_epoch, job.origin and job.origin.path) == (4, "/saved")


def test_the_files_of_a_job_folder_are_read(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text(
        '{"end": true, "epoch": 4, "files": [{"name": "out-4.jsonl", "path": "staging/out-4", "rows": 3, "sink": "out", '
        '"size_bytes": 40}], "now_ms": 12, "positions": {"rows": {"0": 10}}}'
    )
    staged = Staged("out", "staging/out-4", "out-4.jsonl", 3, 40)
    assert Manifest.read(file) == Manifest(4, (staged,), end=True, positions={"rows": {"0": 10}}, now_ms=12)
    file.write_text('{"end": false, "epoch": 4, "positions": {"rows": {"0": 10}}}')
    assert Published.read(file) == Published(4, end=False, positions={"rows": {"0": 10}})
    file.write_text(LINE)
    line = read_history(file)[2]
    assert (line.time_ms, line.duration_ms, line.offset, line.stored_bytes) == (1794830530443, 882, OFFSET, 5684)
    step = line.steps["count"]
    assert (step["rows_in"], step["late_dropped"], step["changelog_bytes"]["n"], step["state"]) == (2, 4, 648, {"n": 2})
    file.write_text('{"attempt": 1, "failed_ms": 5, "delay_ms": 7, "error": "E", "message": "no", "step": null}\n')
    assert read_reasons(file) == (hw.RestartReason(1, 5, 7, "E", "no", None),)
    (tmp_path / "replay.json").write_text('{"epochs": [{"offset": ' + LOGGED + ', "committed": true}]}')
    replay = Replay.in_outbox(OutboxLayout(tmp_path))
    assert (replay.epochs[2].offset, replay.was_committed(2)) == (OFFSET, True)


def test_the_head_of_a_changelog_is_read_with_the_form_its_base_was_cut_in() -> None:
    assert Head.from_text(HEAD, "head") == Head(3, "0" * 32, 1, 700, 90, parts=[], next_parts=[])
    cut = {
        "format": 3,
        "sequence": 9,
        "token": "t",
        "base": 4,
        "base_bytes": 5,
        "delta_bytes": 7,
        "parts": [4, 5],
        "form": 2,
    }
    taken = Head.from_json(cut, "head").taken(5)
    assert taken is not None
    assert (taken.first, taken.stop, taken.count, taken.form) == (1, 2, 2, 2)
    taken = Head.from_json({**cut, "format": 4, "form": 3}, "head").taken(5)
    assert taken is not None
    assert taken.form == 3
