"""A few bytes do not become much: records and files that are made to unpack to more than memory holds."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headwater as hw

DECIMAL: dict[str, Any] = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}


def record(*fields: Any) -> dict[str, Any]:
    named = [{"name": f"f{number}", "type": field} for number, field in enumerate(fields)]
    return {"type": "record", "name": "Order", "fields": named}


def varint(number: int) -> bytes:
    number, out = number << 1, b""
    while number & ~0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


EMPTY = {"type": "record", "name": "Empty", "fields": []}
NODE = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        (record("long", {"type": "array", "items": "null"}), "the items of an array take no bytes"),
        (record("long", {"type": "array", "items": {"type": "null"}}), "the items of an array take no bytes"),
        (record({"type": "array", "items": EMPTY}), "the items of an array take no bytes"),
        (record(["null", EMPTY], {"type": "map", "values": {"type": "array", "items": "Empty"}}), "take no bytes"),
        (record({"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}}), "take no bytes"),
        (record("long", NODE), "Node contains itself"),
        (record("long", {"type": "array", "items": ["null", "Order"]}), "Order contains itself"),
    ],
)
def test_schemas_by_which_bytes_become_any_number_of_items_are_refused(schema: Any, told: str) -> None:
    with pytest.raises(hw.GraphError, match=told):
        hw.connectors.avro(schema)


def test_schemas_in_which_a_type_is_used_twice_are_not() -> None:
    place = {"type": "record", "name": "Place", "namespace": "n", "fields": [{"name": "x", "type": "long"}]}
    found = hw.connectors.avro(record(place, ["null", "n.Place"], {"type": "array", "items": "n.Place"}))
    table = found.decode([b"\x02\x02\x04\x02\x06\x00"], hw.Schema.of("f0 struct<x:long>, f1 struct<x:long>").arrow)
    assert table.to_pylist() == [{"f0": {"x": 1}, "f1": {"x": 2}}]


def test_a_decimal_of_a_megabyte_is_refused_at_once() -> None:
    from headwater.connectors.formats import numbered_rows

    value = varint(1_000_000) + b"\x7f" * 1_000_000
    schema = hw.Schema.of("f0 decimal(10,2)").arrow
    (found,) = numbered_rows([(0, value)], hw.connectors.avro(record(DECIMAL)), schema)
    assert isinstance(found, tuple)
    assert "a decimal has 1000000 bytes, and 64 is the most" in found[1]


# -- files ----------------------------------------------------------------------------------------------------------


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "zst": lambda text: pa.compress(text, codec="zstd", asbytes=True),
}


def rows_of(folder: Path, format: Any, schema: str = "n bigint", **settings: Any) -> list[Any]:  # noqa: A002
    env = hw.Environment("unpacked", engine="local")
    source = hw.connectors.read_files(folder, format=format, watch=False, settle="0 s", **settings)
    return env.source(source, schema).collect()


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize(("format", "line"), [("json", b'{"n": 1}\n'), ("csv", b"n\n" + b"1\n" * 4)])
def test_packed_text_is_unpacked_up_to_a_limit(tmp_path: Path, packer: str, format: str, line: bytes) -> None:  # noqa: A002
    path = tmp_path / f"a.{format}.{packer}"
    path.write_bytes(PACKERS[packer](line.ljust(3_000_000, b"\n")))
    assert path.stat().st_size < 20_000
    with pytest.raises(
        hw.SourceError, match=r"unpacks to more than [\d,]+ bytes; if that is right, raise max_unpacked"
    ):
        rows_of(tmp_path, format, max_unpacked_bytes=1_000_000)
    assert [row.n for row in rows_of(tmp_path, format)] == [1] * (1 if format == "json" else 4)


def test_what_is_packed_as_text_is_has_no_limit(tmp_path: Path) -> None:
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(b"".join(b'{"n": %d}\n' % n for n in range(100_000))))
    assert len(rows_of(tmp_path, "json", max_unpacked_bytes=1)) == 100_000


def test_a_file_without_lines_is_not_gathered_whole(tmp_path: Path) -> None:
    with (tmp_path / "a.json").open("wb") as out:
        out.truncate(200 << 20)
    with pytest.raises(hw.SourceError, match="line 1 has more than 67,108,864 bytes"):
        rows_of(tmp_path, "json")


def repeated(value: pa.Array, count: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), value)


TEXT = pa.array(["x" * 100_000])
BOMBS: dict[str, tuple[pa.Array, str, bool]] = {
    "one text, often": (repeated(TEXT, 60_000), "string", True),
    "one text, told as text": (repeated(TEXT, 60_000), "string", False),
    "one text in structs": (pa.StructArray.from_arrays([repeated(TEXT, 60_000)], ["x"]), "struct<x:string>", False),
    "one text in lists": (
        pa.ListArray.from_arrays(pa.array(range(0, 60_001, 20), pa.int32()), repeated(TEXT, 60_000)),
        "array<string>",
        False,
    ),
    "one number, often": (pa.array(np.zeros(8_000_000, np.int64)), "bigint", True),
    "a long list": (pa.array([[0] * 3_000_000], pa.list_(pa.int64())), "array<bigint>", True),
    "nothing, often": (pa.nulls(20_000_000, pa.int64()), "bigint", True),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_small_parquet_file_does_not_become_large(tmp_path: Path, bomb: str) -> None:
    column, dtype, is_told = BOMBS[bomb]
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"n": column}), path, compression="zstd", row_group_size=1 << 30, store_schema=is_told)
    assert path.stat().st_size < 200_000
    pool = pa.default_memory_pool()
    before, most = pool.bytes_allocated(), pool.max_memory()
    with pytest.raises(hw.SourceError, match="it unpacks to more than 20,000,000 bytes"):
        rows_of(tmp_path, "parquet", f"n {dtype}", max_unpacked_bytes=20_000_000)
    assert pool.max_memory() <= max(most, before + (400 << 20)), "the 6 GB that it stands for were never there"


def test_rows_of_large_values_are_all_read(tmp_path: Path) -> None:
    values = [str(number % 3) * 10_000_000 for number in range(10)]
    pq.write_table(
        pa.table({"n": range(10), "s": values}), tmp_path / "a.parquet", compression="zstd", row_group_size=9
    )
    found = rows_of(tmp_path, "parquet", "n bigint, s string")
    assert [(row.n, row.s[:1], len(row.s)) for row in found] == [(n, str(n % 3), 10_000_000) for n in range(10)]
