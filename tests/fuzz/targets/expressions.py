"""Expressions: refused when the graph is built, or computed from each row alone, the same each time."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from random import Random

import pyarrow as pa
from tests.fuzz.target import Target, expect

from headwater.data.expressions import compile_select, run
from headwater.data.functions import FAMILIES
from headwater.data.rows import encode_rows
from headwater.data.schema import Schema

_SCHEMA = Schema.of(
    "k string, n bigint, i int, x double, tags array<string>, at timestamp, day date, "
    "d decimal(10,2), s struct<a:int,b:string>, m map<string,int>, b boolean, raw binary"
)
_AT = dt.datetime(2024, 5, 6, 7, 8, 9, tzinfo=dt.UTC)
_ROWS = [
    ("a", 1, 2, 0.5, ["p", "q"], _AT, _AT.date(), Decimal("1.25"), (7, "x"), {"u": 1}, True, b"\0\xff"),
    (None,) * 12,
    (
        "ü%_'",
        -(2**63),
        2**31 - 1,
        float("nan"),
        [],
        _AT,
        _AT.date(),
        Decimal("-99999999.99"),
        (0, None),
        {},
        False,
        b"",
    ),
]
_WORDS = (
    *("k", "n", "i", "x", "tags", "at", "day", "d", "s", "m", "b", "raw", "s.a", "m['u']", "tags[1]"),
    *(
        "1",
        "0",
        "-1",
        "2147483648",
        "9223372036854775807",
        "1.5",
        "1e308",
        "1e-320",
        "NULL",
        "TRUE",
        "'x'",
        "''",
        "'%'",
    ),
    *("+", "-", "*", "/", "%", "=", "<>", "<", "<=", "||", "AND", "OR", "NOT", "IS NULL", "IS NOT TRUE", "IN", "LIKE"),
    *(
        "BETWEEN",
        "CASE WHEN",
        "THEN",
        "ELSE",
        "END",
        "CAST(",
        "TRY_CAST(",
        "AS INT)",
        "AS STRING)",
        "AS DECIMAL(38, 18))",
    ),
    *(
        "(",
        ")",
        ",",
        "[",
        "]",
        ".",
        ";",
        "--",
        "/*",
        "*/",
        '"',
        "`",
        "'",
        "\\",
        "::",
        "?",
        ":x",
        "@",
        "$1",
        "\0",
        "\u202e",
    ),
    *(
        "INTERVAL '1' DAY",
        "DATE '2024-01-01'",
        "TIMESTAMP '2024-01-01 00:00:00'",
        "SELECT",
        "FROM",
        "OVER ()",
        "* EXCEPT (k)",
    ),
    *(
        "read_csv('/etc/passwd')",
        "getenv('HOME')",
        "random()",
        "uuid()",
        "pragma_version()",
        "COPY",
        "ATTACH 'x'",
        "now()",
    ),
)
_SEEDS = (
    "n + 1 as m1",
    "case when n > 1 then 'big' else 'small' end as size",
    "cast(d as decimal(20, 4)) / 3 as third",
    "concat(k, '-', upper(k)) as kk",
    "coalesce(s.a, i, -1) as filled",
    "at + interval '1' day as next",
    "k like 'a%' or k in ('x', 'y') as hit",
    "tags[1] as first",
    "substring(k, 1, 2) as two",
    "regexp_replace(k, '(a+)', '$1') as replaced",
    "timestampdiff(day, at, timestamp '2024-01-01 00:00:00') as days",
    "json_value(k, '$.a.b') as inner",
)
_DEEPEST = 3_000


class Expressions(Target):
    name = "expression"
    subjects = ("step 'fuzz'", "field", "column")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._rows = encode_rows(_ROWS, _SCHEMA.arrow, "fuzz")
        named = (name for family in FAMILIES.values() for function in family for name in function.names)
        self._names = sorted(name for name in named if name.isidentifier())

    def whole(self) -> str:
        return _SEEDS[0]

    def mutant(self, random: Random) -> str:
        how = random.random()
        if how < 0.02:
            opening, closing = random.choice(
                (("(", ")"), ("abs(", ")"), ("not ", ""), ("-", ""), ("n + (", ")"), ("[", "]"))
            )
            depth = random.randrange(_DEEPEST)
            return f"{opening * depth}n{closing * depth} as deep"
        if how < 0.4:
            return f"{self._call(random, 2)} as called"
        text = random.choice(_SEEDS)
        for _ in range(random.randint(1, 4)):
            at, to = sorted((random.randint(0, len(text)), random.randint(0, len(text))))
            to = random.choice((at, at + 1, to))
            text = (
                text[:at]
                + random.choice(("", " ", f" {random.choice(_WORDS)} ", chr(random.randrange(0x250))))
                + text[to:]
            )
        return text

    def _call(self, random: Random, depth: int) -> str:
        """A function of the table with arguments that may or may not fit."""
        if not depth or random.random() < 0.3:
            return random.choice(_WORDS)
        inner = ", ".join(self._call(random, depth - 1) for _ in range(random.randrange(4)))
        return f"{random.choice(self._names)}({inner})"

    def read(self, artefact: str) -> None:
        query, schema = compile_select([artefact], _SCHEMA, "fuzz")
        try:
            whole, places = run(query, self._rows, schema.arrow)
        except Exception as error:
            if type(error).__module__.split(".")[0] in ("duckdb", "_duckdb") or isinstance(error, pa.ArrowException):
                return  # what a value does not allow, such as a number that is too large: the step wraps it with its row
            raise
        again, _ = run(query, self._rows, schema.arrow)
        expect(repr(again.to_pylist()), repr(whole.to_pylist()), f"{artefact!r}, computed again,")
        alone = [run(query, self._rows.slice(at, 1), schema.arrow)[0].to_pylist() for at in range(len(self._rows))]
        expect(repr([row for rows in alone for row in rows]), repr(whole.to_pylist()), f"{artefact!r}, row by row,")
        expect(places.tolist(), list(range(len(self._rows))), "the order of rows")
