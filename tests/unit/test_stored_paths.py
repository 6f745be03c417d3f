"""A name in a stored file never leads out of its folder."""

from __future__ import annotations

from pathlib import Path

import pytest

import headwater as hw
from headwater.stored_paths import below


@pytest.mark.parametrize("name", ["a", "day=2024-01-01/part 1.parquet", "x..y/.z", "ä/\\b", "..."])
def test_plain_names_are_below_their_folder(tmp_path: Path, name: str) -> None:
    assert below(tmp_path, name, "the ledger") == tmp_path / name


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "/", "/etc/passwd", "../x", "a/../../x", "a/..", "a//b", "a/./b", "a/", "a\0b", None, 7, ["a"]],
)
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, name: object) -> None:
    with pytest.raises(hw.UnsafePath, match=r"the ledger may only name files below .*; use a copy that you trust"):
        below(tmp_path, name, "the ledger")


def test_a_link_out_of_the_folder_is_refused_and_one_within_it_is_not(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    (tmp_path / "secret").write_text("mine")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "away").symlink_to(tmp_path)
    (folder / "near").symlink_to(folder / "inner")
    (tmp_path / "same").symlink_to(folder)
    for name in ("link", "away/secret", "away/new"):
        with pytest.raises(hw.UnsafePath):
            below(folder, name, "the ledger")
    assert below(folder, "near/x", "the ledger") == folder / "near" / "x"
    assert below(tmp_path / "same", "inner/x", "the ledger") == tmp_path / "same" / "inner" / "x"
