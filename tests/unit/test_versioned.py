from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

import headwater as hw
from headwater.errors import NewerFormat
from headwater.versioned import Versioned


@dataclass(frozen=True)
class Place(Versioned):
    FORMAT = 2

    name: str
    at: int = 7


def test_a_record_comes_back_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "place.json"
    assert Place.read_if_there(file) is None
    Place("a", 3).write(file)
    assert file.read_text() == '{"crc32":1510502862,"at":3,"format":2,"name":"a"}'
    assert Place.read(file) == Place("a", 3)


@pytest.mark.parametrize("content", [{"name": "a"}, {"name": "a", "format": 1}, {"name": "a", "format": 2, "more": 0}])
def test_an_older_record_has_defaults_and_what_is_not_known_is_passed_over(content: dict[str, object]) -> None:
    assert Place.from_json(content, "here") == Place("a", 7)


def test_a_newer_record_is_refused_with_the_way_out() -> None:
    with pytest.raises(NewerFormat) as caught:
        Place.from_json({"format": 3, "name": "a"}, "some/place.json")
    assert str(caught.value) == (
        "some/place.json cannot be read: it is of version 3, and this Headwater knows versions up to 2; "
        "use the newer Headwater that wrote it"
    )
    assert caught.value.is_final, "no restart of the job changes it"


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "{}", '{"at": 1}', '{"name": "a", "format": "new"}'])
def test_what_is_no_such_record_is_told(text: str, tmp_path: Path) -> None:
    file = tmp_path / "place.json"
    file.write_text(text)
    with pytest.raises(hw.JobError, match=r"place\.json cannot be read: "):
        Place.read(file)
    with pytest.raises(hw.JobError, match=r"gone\.json cannot be read: it is missing"):
        Place.read(tmp_path / "gone.json")


@pytest.mark.parametrize(
    "text",
    [
        '{"crc32":1,"at":3,"format":2,"name":"a"}',
        Place("a", 3).to_text().replace('"at":3', '"at":4'),
        Place("a", 3).to_text().replace("crc32", "crc33"),
        '{"at":3,"name":"a","more":1}',
        '{"at":"3","name":"a"}',
        '{"at":true,"name":"a"}',
        '{"at":99999999999999999999,"name":"a"}',
        '{"name":["a"]}',
        '{"name":"\\ud800"}',
        '{"name":"a","format":0}',
        '{"name":"a","format":1.5}',
        '{"name":' + "[" * 100_000,
    ],
)
def test_a_record_that_was_changed_is_refused(text: str) -> None:
    with pytest.raises(hw.JobError, match=r"some/place\.json cannot be read: "):
        Place.from_text(text, "some/place.json")


def test_a_whole_record_of_another_kind_is_refused() -> None:
    @dataclass(frozen=True)
    class Other(Versioned):
        name: str
        at: int

    with pytest.raises(hw.JobError, match="its checksum does not fit"):
        Other.from_text(Place("a", 3).to_text(), "here")


def test_what_was_written_before_there_were_checksums_is_read() -> None:
    assert Place.from_text('{"at":3,"format":2,"name":"a"}', "here") == Place("a", 3)
