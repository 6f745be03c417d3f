from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from headwater.durable import append_line, write_atomically


def test_a_whole_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    write_atomically(path, b"old")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_leaves_the_old_file_and_no_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "facts.json"
    write_atomically(path, b"old")

    def fail(self: Path, target: Path) -> Path:
        raise OSError("disk gone")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk gone"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_lines_are_added(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    append_line(path, "one")
    append_line(path, "zwei ü")
    assert path.read_text() == "one\nzwei ü\n"


@pytest.mark.parametrize("torn", [b"to", b"x" * 10_000])
@pytest.mark.parametrize("before", [b"", b"one\n", b"y" * 5000 + b"\n"])
def test_a_torn_line_is_cut_off_before_the_next(tmp_path: Path, before: bytes, torn: bytes) -> None:
    path = tmp_path / "lines"
    path.write_bytes(before + torn)
    append_line(path, "two")
    assert path.read_bytes() == before + b"two\n"


@pytest.mark.parametrize(("private", "mode"), [(True, 0o600), (False, 0o644)])
def test_a_private_file_is_its_owners_alone(tmp_path: Path, *, private: bool, mode: int) -> None:
    before = os.umask(0o022)
    try:
        write_atomically(tmp_path / "plan", b"secret", private=private)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "plan").stat().st_mode) == mode
