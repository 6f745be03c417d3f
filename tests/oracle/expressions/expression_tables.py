"""The rows that expressions are tried on: usual values, edges and NULLs of every type.

A table has columns in Flink's DDL and in ours. Values are JSON: decimals and times are text, bytes hexadecimal, a map is
a list of pairs, a row a list.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Table(NamedTuple):
    """Columns in both dialects, and rows."""

    flink: str
    headwater: str
    rows: list[list[Any]]


def _columns(rows: list[tuple[str, str, str, list[Any]]]) -> Table:
    """A table from its columns: name, type in Flink, type here, values."""
    flink = ", ".join(f"{name} {dtype}" for name, dtype, _, _ in rows)
    ours = ", ".join(f"{name} {dtype}" for name, _, dtype, _ in rows)
    return Table(flink, ours, [list(row) for row in zip(*(values for *_, values in rows), strict=True)])


NUMBERS = _columns(
    [
        ("t", "TINYINT", "tinyint", [1, 0, -7, 127, -128, 3, None]),
        ("sm", "SMALLINT", "smallint", [2, 0, -7, 32767, -32768, 3, None]),
        ("i", "INT", "int", [7, 0, -7, 2147483647, -2147483648, 3, None]),
        ("j", "INT", "int", [2, 5, -2, 1, 1, 0, None]),
        ("b", "BIGINT", "bigint", [9, 0, -9, 9223372036854775807, -9223372036854775808, 300, None]),
        ("f", "FLOAT", "float", ["1.5", "0.0", "-2.25", "1.0E10", "NaN", "Infinity", None]),
        ("x", "DOUBLE", "double", ["2.7", "0.0", "-2.5", "1.0E20", "NaN", "-Infinity", None]),
        ("y", "DOUBLE", "double", ["0.5", "-0.75", "3.0", "123456789.125", "1.0E-5", "0.0", None]),
        ("d", "DECIMAL(10, 2)", "decimal(10,2)", ["1.25", "0.00", "-2.50", "99999999.99", "-0.01", "3.00", None]),
        ("g", "DECIMAL(5, 3)", "decimal(5,3)", ["2.125", "-0.001", "1.500", "99.999", "3.000", "0.000", None]),
        (
            "h",
            "DECIMAL(38, 10)",
            "decimal(38,10)",
            ["1.5", "-0.0000000001", "3.3333333333", "9999999999999999999999999999.0", "1.0", "7.0", None],
        ),
        ("p", "BOOLEAN", "boolean", [True, False, True, False, True, None, None]),
        ("q", "BOOLEAN", "boolean", [True, False, False, True, None, None, True]),
    ]
)
STRINGS = _columns(
    [
        ("s", "STRING", "string", ["hello world", "", "a_b%c", " 12 ", "héllo wörld", "a,b,,c", "it's \\d", None]),
        ("u", "STRING", "string", ["o", "", "_", "12", "l", ",", "\\", "x"]),
        ("v", "STRING", "string", ["12", "-7", "1.5", "abc", "", "true", "2024-05-06", None]),
        (
            "w",
            "STRING",
            "string",
            ["1e3", "NaN", " 5", "99999999999", "FALSE", "+3", "2024-05-06 07:08:09.123", "0x1F"],
        ),
        ("c", "STRING", "string", ["foo123bar", "a=1,b=2", "k1=v1;k2=v2", "AAA", "x.y.z", "aXbXc", "$1", None]),
        ("n", "INT", "int", [1, 0, -1, 3, 2, 100, -3, None]),
        ("k", "INT", "int", [3, 2, 1, 0, -1, 5, 2, 1]),
        ("z", "BYTES", "binary", ["68656c6c6f", "", "c3a9", "00", "616263", "7a", "41", None]),
    ]
)
TIMES = _columns(
    [
        (
            "a",
            "TIMESTAMP(6)",
            "timestamp_ntz",
            [
                "2024-05-06T07:08:09.123456",
                "2024-02-29T00:00:00",
                "2023-12-31T23:59:59.999999",
                "1969-12-31T23:59:59.5",
                "2024-01-31T12:00:00",
                None,
            ],
        ),
        (
            "b",
            "TIMESTAMP(6)",
            "timestamp_ntz",
            [
                "2024-05-07T07:08:09.123455",
                "2023-02-28T00:00:00",
                "2024-12-30T00:00:00",
                "1970-01-01T00:00:00",
                "2024-02-29T11:59:59",
                "2024-01-01T00:00:00",
            ],
        ),
        (
            "l",
            "TIMESTAMP_LTZ(6)",
            "timestamp",
            [
                "2024-05-06T07:08:09.123456",
                "2024-03-31T01:30:00",
                "2000-01-01T00:00:00",
                "1969-07-20T20:17:40",
                "2024-01-31T12:00:00",
                None,
            ],
        ),
        ("d", "DATE", "date", ["2024-05-06", "2024-02-29", "2023-12-31", "1969-12-31", "2025-01-01", None]),
        ("e", "DATE", "date", ["2024-05-01", "2023-02-28", "2024-12-30", "1970-01-01", "2024-12-29", "2024-01-01"]),
        ("n", "INT", "int", [1, 12, -1, 0, 13, None]),
        ("m", "BIGINT", "bigint", [1714979289, 0, -1, 253402300799, 1714979289123, None]),
        (
            "s",
            "STRING",
            "string",
            ["2024-05-06 07:08:09", "2024-05-06", "2024-5-6 7:8:9", "06.05.2024 07:08", "nonsense", None],
        ),
        (
            "u",
            "STRING",
            "string",
            ["2024-05-06 07:08:09.123456", "2024-02-30", "2024-05-06T07:08:09", "2024-05-06 25:00:00", "", "20240506"],
        ),
    ]
)
NESTED = _columns(
    [
        ("a", "ARRAY<INT>", "array<int>", [[3, 1, 2], [], [1, None, 1, None, 2], [5], None]),
        ("b", "ARRAY<INT>", "array<int>", [[2, 9], [1], [None], None, [1]]),
        ("s", "ARRAY<STRING>", "array<string>", [["x", "y"], [], ["p", None, "p"], ["z"], None]),
        ("x", "ARRAY<DOUBLE>", "array<double>", [["1.5", "-2.0"], [], [None, "0.0"], ["7.0"], None]),
        ("i", "INT", "int", [1, 0, 2, 5, None]),
        ("t", "STRING", "string", ["x", "y", None, "a", "b"]),
        ("m", "MAP<STRING, INT>", "map<string,int>", [[["a", 1], ["b", 2]], [], [["x", None]], [["a", 5]], None]),
        ("r", "ROW<f INT, g STRING>", "struct<f:int,g:string>", [[1, "q"], [None, None], [3, None], None, [5, "w"]]),
        ("n", "ARRAY<ARRAY<INT>>", "array<array<int>>", [[[1], [2, 3]], [], [None], [[None]], None]),
    ]
)
JSONS = _columns(
    [
        (
            "j",
            "STRING",
            "string",
            [
                '{"a": 1, "b": {"c": "x"}, "d": [1, 2, {"e": null}], "f": true, "g": 1.50, "h": "y"}',
                "[1, 2]",
                '"text"',
                "null",
                "{bad",
                "",
                '{"a": null, "b": "1", "d": []}',
                None,
            ],
        ),
        ("i", "INT", "int", [1, 2, 3, 4, 5, 6, 7, None]),
        ("s", "STRING", "string", ["x", '"q"', "ü\n", "", "a", "b", "c", None]),
    ]
)
TABLES = {"numbers": NUMBERS, "strings": STRINGS, "times": TIMES, "nested": NESTED, "jsons": JSONS}
