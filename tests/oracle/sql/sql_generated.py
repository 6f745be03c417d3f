"""Statements that are made from a seed: random tables with NULLs and rows out of order, and random queries over them."""

from __future__ import annotations

import random
from typing import Any

from sql_tables import Table, at

_TYPES = ("INT", "BIGINT", "DOUBLE", "DECIMAL(8, 2)", "STRING", "BOOLEAN")
_NUMBERS = ("INT", "BIGINT", "DOUBLE", "DECIMAL(8, 2)")
_WINDOWS = (
    "TUMBLE({}, DESCRIPTOR(ts), INTERVAL '10' SECOND)",
    "TUMBLE({}, DESCRIPTOR(ts), INTERVAL '7' SECOND)",
    "HOP({}, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '15' SECOND)",
    "HOP({}, DESCRIPTOR(ts), INTERVAL '4' SECOND, INTERVAL '8' SECOND)",
    "CUMULATE({}, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '20' SECOND)",
    "SESSION({} PARTITION BY k, DESCRIPTOR(ts), INTERVAL '6' SECOND)",
)


def cases(seed: int, count: int) -> list[dict[str, Any]]:
    """So many cases: tables and a statement each."""
    return [_Case(random.Random(seed * 100_003 + number)).made() for number in range(count)]


class _Case:
    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.tables: dict[str, Table] = {}

    def made(self) -> dict[str, Any]:
        form = self._chance.choice(
            (
                self._select,
                self._select,
                self._grouped,
                self._grouped,
                self._windowed,
                self._windowed,
                self._joined,
                self._joined,
                self._interval,
                self._ranked,
                self._set,
                self._semi,
            )
        )
        statement = form()
        return {"tables": self.tables, "statement": statement}

    # -- tables -----------------------------------------------------------------------------------------------------

    def _table(self, name: str, *, late: bool = False) -> Table:
        """`id` has no NULL and is different in every row, `k` is a key, then come columns of any type."""
        types = [self._chance.choice(_TYPES) for _ in range(self._chance.randint(2, 4))]
        columns = [["id", "INT"], ["k", self._chance.choice(("STRING", "INT"))]]
        columns += [[f"c{number}", dtype] for number, dtype in enumerate(types)]
        columns.append(["ts", "TIMESTAMP(3)"])
        disorder = self._chance.choice((0, 3, 6))
        rows = []
        now = 0.0
        for number in range(self._chance.randint(4, 14)):
            now += self._chance.choice((0, 1, 1.5, 3, 9))
            when = max(0.0, now - self._chance.uniform(0, disorder + 8 * late * (self._chance.random() < 0.3)))
            values = [self._value(dtype) for _, dtype in columns[1:-1]]
            rows.append([number, *values, at(round(when, 3))])
        self.tables[name] = {
            "columns": columns,
            "rows": rows,
            "time": "ts",
            "delay_ms": 0 if late else disorder * 1000,
        }
        if not late:
            self.tables[name]["delay_ms"] += 1
        return self.tables[name]

    def _value(self, dtype: str) -> Any:
        if self._chance.random() < 0.2:
            return None
        if dtype in ("INT", "BIGINT"):
            return self._chance.randint(-2, 5)
        if dtype == "DOUBLE":
            return self._chance.choice((-1.5, 0.0, 0.25, 2.0, 100.5))
        if dtype.startswith("DECIMAL"):
            return self._chance.choice(("0.00", "1.25", "-3.10", "99.99"))
        if dtype == "STRING":
            return self._chance.choice(("a", "b", "", "Ab c", "é"))
        return self._chance.random() < 0.5

    def _columns(self, table: Table, *types: str) -> list[str]:
        return [name for name, dtype in table["columns"] if dtype in types and name != "id"]

    # -- expressions ------------------------------------------------------------------------------------------------

    def _expression(self, table: Table, depth: int = 2) -> str:
        return self._chance.choice((self._number, self._number, self._text, self._condition))(table, depth)

    def _number(self, table: Table, depth: int) -> str:
        columns = self._columns(table, *_NUMBERS)
        if depth == 0 or not columns:
            return self._chance.choice([*columns, "id", "1", "2"])
        one, other = (self._number(table, depth - 1) for _ in range(2))
        forms = ("({0} + {1})", "({0} - {1})", "({0} * 2)", "ABS({0})", "COALESCE({0}, {1})", "NULLIF({0}, {1})")
        more = (
            "CASE WHEN {2} THEN {0} ELSE {1} END",
            "CASE WHEN {2} THEN {0} END",
            "GREATEST({0}, {1})",
            "LEAST({0}, {1})",
            "SIGN({0})",
            "FLOOR({0})",
            "CEIL({0})",
            "CHAR_LENGTH({3})",
            "CAST({0} AS DOUBLE)",
            "CAST({0} AS BIGINT)",
            "({0} / 4)",
            "POSITION('b' IN {3})",
        )
        form = self._chance.choice((*forms, *more))
        return form.format(one, other, self._condition(table, depth - 1), self._text(table, depth - 1))

    def _text(self, table: Table, depth: int) -> str:
        columns = self._columns(table, "STRING")
        if depth == 0:
            return self._chance.choice([*columns, "'b'", "'Ab'"])
        one, other = (self._text(table, depth - 1) for _ in range(2))
        forms = (
            "UPPER({0})",
            "LOWER({0})",
            "({0} || {1})",
            "CONCAT({0}, '-', {1})",
            "CONCAT_WS('/', {0}, {1})",
            "TRIM({0})",
            "SUBSTRING({0}, 2)",
            "SUBSTRING({0}, 1, 2)",
            "LEFT({0}, 1)",
            "RIGHT({0}, 2)",
            "REPLACE({0}, 'b', 'BB')",
            "REVERSE({0})",
            "REPEAT({0}, 2)",
            "LPAD({0}, 3, '*')",
            "COALESCE({0}, {1})",
            "CASE WHEN {2} THEN {0} ELSE {1} END",
            "CAST({3} AS STRING)",
            "INITCAP({0})",
            "OVERLAY({0} PLACING 'x' FROM 1)",
            "REGEXP_REPLACE({0}, '[ab]', '_')",
        )
        integer = self._chance.choice([*self._columns(table, "INT", "BIGINT"), "id"])
        return self._chance.choice(forms).format(one, other, self._condition(table, depth - 1), integer)

    def _condition(self, table: Table, depth: int) -> str:
        flags = self._columns(table, "BOOLEAN")
        if depth == 0:
            return self._chance.choice([*flags, *flags, "(id > 3)", "(k IS NULL)", "(id < 8)"])
        one, other = (self._condition(table, depth - 1) for _ in range(2))
        forms = (
            "({0} AND {1})",
            "({0} OR {1})",
            "(NOT {0})",
            "({0} IS TRUE)",
            "({0} IS NOT FALSE)",
            "({2} > {3})",
            "({2} = {3})",
            "({2} <> 1)",
            "({2} IN (0, 1, 2))",
            "({2} NOT IN (0, 1))",
            "({2} BETWEEN 0 AND 3)",
            "({2} IS NULL)",
            "({4} IS NOT NULL)",
            "({4} LIKE '%b%')",
            "({4} = 'b')",
            "({4} > 'a')",
            "({2} IS DISTINCT FROM {3})",
        )
        numbers = (self._number(table, depth - 1) for _ in range(2))
        return self._chance.choice(forms).format(one, other, *numbers, self._text(table, depth - 1))

    def _aggregates(self, table: Table) -> list[str]:
        calls = ["COUNT(*)"]
        for name, dtype in table["columns"]:
            if dtype in _NUMBERS:
                calls += [f"{call}({name})" for call in ("SUM", "AVG", "MIN", "MAX", "COUNT", "SUM")]
                calls += [f"{call}(DISTINCT {name})" for call in ("COUNT", "SUM")]
                calls += [f"SUM({name}) FILTER (WHERE {self._condition(table, 1)})"]
                calls += [f"{call}({name})" for call in ("STDDEV_POP", "VAR_SAMP")]
            elif dtype == "STRING":
                calls += [f"MIN({name})", f"MAX({name})", f"COUNT(DISTINCT {name})", f"LISTAGG({name})"]
        calls.append(f"SUM({self._number(table, 1)})")
        calls.append(f"COUNT(*) FILTER (WHERE {self._condition(table, 1)})")
        return [f"{call} AS a{number}" for number, call in enumerate(self._chance.sample(calls, min(3, len(calls))))]

    # -- statements -------------------------------------------------------------------------------------------------

    def _select(self) -> str:
        table = self._table("t")
        shown = ", ".join(f"{self._expression(table)} AS e{number}" for number in range(3))
        return f"SELECT id, {shown} FROM t WHERE {self._condition(table, 2)}"

    def _grouped(self) -> str:
        table = self._table("t", late=self._chance.random() < 0.3)
        where = f" WHERE {self._condition(table, 1)}" if self._chance.random() < 0.4 else ""
        having = " HAVING COUNT(*) > 1" if self._chance.random() < 0.3 else ""
        calls = ", ".join(self._aggregates(table))
        form = self._chance.random()
        if form < 0.2:
            return f"SELECT {calls} FROM t{where}"
        if form < 0.5:
            return f"SELECT COUNT(*) AS n, c FROM (SELECT k, COUNT(*) AS c FROM t{where} GROUP BY k{having}) GROUP BY c"
        return f"SELECT k, {calls} FROM t{where} GROUP BY k{having}"

    def _windowed(self) -> str:
        table = self._table("t", late=self._chance.random() < 0.6)
        window = self._chance.choice(_WINDOWS)
        keys = "k, " if "PARTITION" in window or self._chance.random() < 0.6 else ""
        calls = ", ".join(self._aggregates(table))
        where = f" WHERE {self._condition(table, 1)}" if self._chance.random() < 0.3 and "SESSION" not in window else ""
        source = window.format("TABLE t")
        return (
            f"SELECT {keys}window_start, window_end, {calls} FROM TABLE({source}){where} "
            f"GROUP BY {keys}window_start, window_end"
        )

    def _joined(self) -> str:
        left, right = self._table("l"), self._table("r")
        right["columns"][1][1] = left["columns"][1][1]
        for row in right["rows"]:
            row[1] = self._value(left["columns"][1][1])
        kind = self._chance.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
        on = self._chance.choice(("l.k = r.k", "l.id = r.id", "l.k = r.k AND l.id < r.id", "l.k = r.k AND l.id = r.id"))
        if self._chance.random() < 0.3:
            return (
                f"SELECT l.k AS lk, r.k AS rk, l.c, r.s FROM (SELECT k, COUNT(*) AS c FROM l GROUP BY k) AS l "
                f"{kind} (SELECT k, SUM(id) AS s FROM r GROUP BY k) AS r ON l.k = r.k"
            )
        return f"SELECT l.id, r.id AS other, l.k FROM l {kind} r ON {on}"

    def _interval(self) -> str:
        left, right = self._table("l"), self._table("r")
        right["columns"][1][1] = left["columns"][1][1]
        for row in right["rows"]:
            row[1] = self._value(left["columns"][1][1])
        kind = self._chance.choice(("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
        low, high = sorted(self._chance.sample(range(-8, 9), 2))
        return (
            f"SELECT l.id, r.id AS other FROM l {kind} r ON l.k = r.k "
            f"AND r.ts BETWEEN l.ts + INTERVAL '{low}' SECOND AND l.ts + INTERVAL '{high}' SECOND"
        )

    def _ranked(self) -> str:
        table = self._table("t")
        numbers = [*self._columns(table, *_NUMBERS), "id"]
        order = f"{self._chance.choice(numbers)}{self._chance.choice((' DESC', ''))}, id"
        partition = self._chance.choice(("PARTITION BY k ", ""))
        most = self._chance.randint(2, 4)  # of Top-1 Flink tells no rows that go
        shown = self._chance.choice(("id, k, n", "id, k"))
        return (
            f"SELECT {shown} FROM (SELECT *, ROW_NUMBER() OVER ({partition}ORDER BY {order}) AS n FROM t) "
            f"WHERE n <= {most}"
        )

    def _set(self) -> str:
        left, right = self._table("l"), self._table("r")
        right["columns"][1][1] = left["columns"][1][1]
        for row in right["rows"]:
            row[1] = self._value(left["columns"][1][1])
        operation = self._chance.choice(("UNION ALL", "UNION", "INTERSECT", "EXCEPT"))
        return f"SELECT k FROM l WHERE {self._condition(left, 1)} {operation} SELECT k FROM r"

    def _semi(self) -> str:
        left, right = self._table("l"), self._table("r")
        right["columns"][1][1] = left["columns"][1][1]
        for row in right["rows"]:
            row[1] = self._value(left["columns"][1][1])
        return self._chance.choice(
            (
                "SELECT id, k FROM l WHERE k IN (SELECT k FROM r)",
                "SELECT id, k FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.k = l.k)",
                "SELECT id, k FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = l.k)",
                "SELECT id, k FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = l.k AND r.id > 3)",
                "SELECT id, k FROM l WHERE id IN (SELECT id FROM r WHERE id > 2) AND id < 7",
                "SELECT id, k FROM l WHERE k NOT IN (SELECT k FROM r WHERE id > 3)",
                "SELECT id, k FROM l WHERE k NOT IN (SELECT k FROM r WHERE k IS NOT NULL) OR id < 4",
                "SELECT id, k IN (SELECT k FROM r) AS b FROM l",
                "SELECT id, k FROM l WHERE k IN (SELECT k FROM r WHERE r.id < l.id)",
                "SELECT id, k FROM l WHERE k NOT IN (SELECT k FROM r WHERE r.id = l.id)",
                "SELECT id, k FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.k = l.k AND r.id <> l.id)",
                "SELECT id, k FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.id > l.id + 2)",
                "SELECT id, k FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = l.k AND r.id < l.id) OR k IS NULL",
                "SELECT id, (SELECT COUNT(*) FROM r WHERE r.k = l.k) AS n, (SELECT MAX(id) FROM r) AS m FROM l",
                "SELECT id, (SELECT MAX(r.id) - COUNT(DISTINCT r.id) FROM r WHERE r.k = l.k) AS n FROM l",
                "SELECT id, k FROM l WHERE id > (SELECT AVG(id) FROM r) OR id < (SELECT MIN(id) FROM r WHERE r.k = l.k)",
                "SELECT k, COUNT(*) AS c FROM l GROUP BY k HAVING COUNT(*) < (SELECT COUNT(DISTINCT id) FROM r)",
            )
        )
