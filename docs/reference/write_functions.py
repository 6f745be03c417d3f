"""Writes functions.md from the table of functions, and from the list of what differs from Flink on purpose."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tests" / "oracle" / "expressions"))

from explained import EXPLAINED  # noqa: E402  it is beside what checks it

from headwater.data.functions import FAMILIES, Function  # noqa: E402

HEAD = """\
# Functions and operators

This is all that expressions may use, in `select`, `where`, `with_column` and everything else that takes one. A name
that is not here is refused, and so are functions that give another value each time, such as `NOW()`, `RAND()` or
`UUID()`: use a column, or `ctx.now` in a function.

The meaning is that of Flink SQL, with UTC as the session's time zone. Every entry is compared with a real Flink over
NULLs, edges and wrong types ([how](../../tests/oracle/expressions/README.md)); [the last
part](#where-it-differs-from-flink) lists what differs on purpose. DuckDB computes whole batches; no Python runs for a
row.

## How to read the tables

`(string, int, int?) -> string` takes two or three arguments. `...` may be repeated, `literal` is a constant in the
text. A capital letter is one type, to which all arguments with that letter are cast: `N` a number, `I` and `J`
integers, `C` what can be equal, `O` what has an order. `number`, `exact` (integers and decimals), `integer`,
`decimal`, `time` (`date`, `timestamp`, `timestamp_ltz`), `timestamps`, `interval` and `any` stand for a type of that
class. Integers widen to larger ones, to decimals and doubles by themselves, a date to a timestamp; where a string
meets a time, it is read as one. All else needs a `CAST`.

## Literals, types and names

| what | how it is written |
| --- | --- |
| strings | `'it''s'`: a quote is doubled, a backslash is plain |
| numbers | `7` is `INT`, or `BIGINT` if large, as `7L`; `1.50` is `DECIMAL(3, 2)`; `1.5E0` and `1.5D` are `DOUBLE` |
| times | `DATE '2024-05-06'`, `TIMESTAMP '2024-05-06 07:08:09.123'` |
| intervals | `INTERVAL '1' DAY`, `INTERVAL '1 02:03:04' DAY TO SECOND`, `INTERVAL '1-6' YEAR TO MONTH` |
| bytes | `x'41ff'` |
| others | `TRUE`, `FALSE`, `NULL` |
| columns | `name`, or in backticks: `` `order` ``. Case counts if two columns differ in nothing else |
| parts | `row.field`, `array[1]` is the first item and beyond the last it is NULL, `map['key']` is NULL without the key |
| all columns | `*`, and `* EXCEPT (a, b)` for all but some; only in `select` |

`CAST(a AS type)` and `TRY_CAST(a AS type)`, which gives NULL where the other fails, take `BOOLEAN`, `TINYINT`,
`SMALLINT`, `INT`, `BIGINT`, `FLOAT`, `DOUBLE`, `DECIMAL(p, s)`, `STRING`, `VARCHAR(n)` (cuts), `CHAR(n)` (cuts and
fills up), `BYTES`, `DATE`, `TIMESTAMP(p)` and `TIMESTAMP_LTZ(p)` with 0, 3 or 6 places, and `ARRAY<type>`. A number
that becomes an integer loses its fraction; an integer that is too large for a smaller type wraps around, a float ends
at the largest, a decimal becomes NULL. `TIMESTAMP` has no time zone, as in Flink and unlike in our schemas, where
`timestamp` is `TIMESTAMP_LTZ` and `timestamp_ntz` is `TIMESTAMP`. Spark's `CAST(2.7 AS INT)` is the same; its `CAST`
of a float that is too large fails.

`CASE WHEN a THEN b ELSE c END` and `CASE a WHEN b THEN c END` give the first that holds.
"""
DIFFERENCES = """\
## Where it differs from Flink

Each is on purpose, and checked.
"""


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for title, family in FAMILIES.items():
        rows = ["| written | takes and gives | meaning |", "| --- | --- | --- |", *map(_row, family)]
        parts.append(f"## {title}\n\n" + "\n".join(rows) + "\n")
    reasons = dict.fromkeys(rule.reason for rule in EXPLAINED)
    listed = [textwrap.fill(f"- {reason}", 120, subsequent_indent="  ") for reason in reasons]
    parts.append(DIFFERENCES + "\n" + "\n".join(listed) + "\n")
    return "\n".join(parts)


def _row(function: Function) -> str:
    written = f"`{function.written or function.name + '(…)'}`"
    if function.also:
        written += ", also " + ", ".join(f"`{name}`" for name in function.also)
    forms = "<br>".join(f"`{form.signature}`" for form in function.forms)
    meaning = function.meaning + (f" Spark: {function.spark}" if function.spark else "")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in (written, forms, meaning)) + " |"


if __name__ == "__main__":
    (HERE / "functions.md").write_text(page())
