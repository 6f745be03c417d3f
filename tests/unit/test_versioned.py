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
    assert file.read_text() == '{"at":3,"format":2,"name":"a"}'
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
