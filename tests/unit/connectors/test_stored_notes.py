"""What connectors have stored: of a newer version it is refused, from before there were versions it is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import headwater as hw
from headwater.connectors.files.sink import FilesSink
from headwater.connectors.kafka.marker import Marker, Note
from headwater.connectors.kafka.send_errors import SendError

HELD = [
    {"epoch": 0, "now_ms": 5, "files": [["k=a/out-0.jsonl", 1, 9]]},
    {"epoch": 1, "now_ms": 6, "files": [["k=a/out-1.jsonl", 1, 9], ["k=b/out-1.jsonl", 1, 9]]},
    {"rolling": ["k=a"]},
]
"""Lines as they were written before they had versions: two epochs, and a roll that was begun."""


def put(path: Path, *documents: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(one)}\n" for one in documents))


def sink(folder: Path) -> FilesSink:
    return hw.connectors.files(folder, format="json", partition_by=["k"], roll_bytes=1 << 20)


def opened(folder: Path) -> None:
    sink(folder).open("out", "dd13", hw.Schema.of("k string, n long"), resumed=True)


def test_notes_of_an_output_from_before_versions_are_read(tmp_path: Path) -> None:
    put(tmp_path / "_headwater" / "owner.json", {"job": "dd13", "sink": "out"})
    put(tmp_path / "_headwater" / "held.jsonl", *HELD)
    for name in ("k=a/out-0.jsonl", "k=a/out-1.jsonl", "k=b/out-1.jsonl"):
        put(tmp_path / "_headwater" / "held" / name, {"n": 1})
    opened(tmp_path)
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("k=*/*")] == [
        "k=a/out-0000000001-from-0000000000.jsonl"
    ]
    put(tmp_path / "sent-out.json", {"job": "dd13", "topic": "t", "epoch": 7})
    assert Note(str(tmp_path / "x"), "out", "dd13", "t").epoch() == 7
    assert Note(str(tmp_path / "x"), "out", "another", "t").epoch() == -1
    assert Marker.read(8, '{"job": "dd13", "next": "ee14"}') == Marker("dd13", 7, "ee14")


@pytest.mark.parametrize(
    "document",
    [{"format": 99, "job": "dd13", "sink": "out"}, ["dd13"], {"job": 7, "sink": "out"}, {"job": "dd13"}, None],
)
def test_an_owner_that_is_none_is_refused_with_the_folder(tmp_path: Path, document: object) -> None:
    put(tmp_path / "_headwater" / "owner.json", document)
    with pytest.raises((hw.PublishError, hw.JobError), match=r"owner\.json cannot be read: (it is of version 99)?"):
        opened(tmp_path)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ({"format": 99, "epoch": 2}, "line 4, cannot be read: it is of version 99"),
        ({"rolling": ["k=c"]}, "line 4, cannot be read: it rolls 'k=c', and nothing is held there; restore it from"),
        ({"epoch": "2"}, "line 4, cannot be read: it/epoch is '2'; restore it from a copy of the folder"),
        ([], "line 4, cannot be read: "),
        ({"epoch": 2, "now_ms": 7, "files": [["../../x", 1, 9]]}, "."),
    ],
)
def test_notes_of_what_is_held_that_are_none_are_refused(tmp_path: Path, line: object, told: str) -> None:
    put(tmp_path / "_headwater" / "owner.json", {"job": "dd13", "sink": "out"})
    put(tmp_path / "_headwater" / "held.jsonl", *HELD[:2], {"rolled": True}, line, {"rolling": ["", "..", "k=a"]})
    with pytest.raises(hw.HeadwaterError, match=told):
        opened(tmp_path)


def test_held_files_that_are_gone_are_told(tmp_path: Path) -> None:
    put(tmp_path / "_headwater" / "owner.json", {"job": "dd13", "sink": "out"})
    put(tmp_path / "_headwater" / "held.jsonl", *HELD)
    with pytest.raises(hw.PublishError, match=r"sink 'out': the staged file .*k=a/out-0.jsonl is neither there nor"):
        opened(tmp_path)


@pytest.mark.parametrize("metadata", ["", "{}", "null", "7", '{"job": 7}', '{"job": "a", "format": 99}', "[" * 9999])
def test_an_offset_that_somebody_else_has_set_is_no_marker(metadata: str) -> None:
    with pytest.raises(SendError, match=r"no marker of Headwater's.*see who has set or reset it") as told:
        Marker.read(3, metadata)
    assert told.value.is_final


def test_a_note_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    put(tmp_path / "sent-out.json", {"format": 99, "job": "dd13", "topic": "t", "epoch": 7})
    with pytest.raises(hw.JobError, match=r"sent-out\.json cannot be read: it is of version 99"):
        Note(str(tmp_path / "x"), "out", "dd13", "t").epoch()
