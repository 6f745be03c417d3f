"""Every error text of streaming SQL. Each says where in the text something is wrong, and shows it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from headwater.errors import GraphError, nearest, short
from headwater.sql.text.places import Place


class SqlError(GraphError):
    """A statement that cannot be read, or that cannot be run as it is written."""

    place: Place | None = None

    @classmethod
    def at(cls, place: Place | None, problem: str, action: str) -> Self:
        """With the place in the text, if it is known."""
        where = "" if place is None else f"line {place.line}, column {place.column}: "
        shown = "" if place is None else f"\n{place.shown()}"
        error = cls(f"{where}{problem}; {action}{shown}")
        error.place = place
        return error

    @classmethod
    def unreadable(cls, place: Place | None, problem: str) -> Self:
        return cls.at(place, f"cannot read the statement: {problem}", "correct the SQL")

    @classmethod
    def too_large(cls, what: str, most: int) -> Self:
        return cls.at(None, f"a statement may have at most {most} {what}", "write it as several, with views")

    @classmethod
    def not_supported(cls, place: Place | None, what: str, action: str) -> Self:
        return cls.at(place, f"{what} is not supported", action)

    @classmethod
    def no_table(cls, place: Place | None, name: str, known: Iterable[str]) -> Self:
        return cls.at(place, f"there is no table or view {name!r}{nearest(name, known)}", "create it first")

    @classmethod
    def no_column(cls, place: Place | None, name: str, known: Iterable[str]) -> Self:
        known = list(known)
        return cls.at(
            place,
            f"there is no column {name!r}{nearest(name, known)}",
            f"the columns are {', '.join(known) or 'none'}; names are case-sensitive",
        )

    @classmethod
    def ambiguous(cls, place: Place | None, name: str, tables: Iterable[str]) -> Self:
        return cls.at(place, f"column {name!r} is in {' and in '.join(tables)}", f"write {next(iter(tables))}.{name}")

    @classmethod
    def not_grouped(cls, place: Place | None, name: str) -> Self:
        return cls.at(
            place,
            f"{name!r} is neither grouped by nor inside of an aggregate",
            "add it to GROUP BY, or put it into an aggregate such as MAX or LAST_VALUE",
        )

    @classmethod
    def misplaced(cls, place: Place | None, what: str, where: str, action: str) -> Self:
        return cls.at(place, f"{what} cannot stand in {where}", action)

    @classmethod
    def wrong_expression(cls, place: Place | None, problem: str, action: str) -> Self:
        return cls.at(place, problem, action)

    @classmethod
    def no_time(cls, place: Place | None, column: str, why: str) -> Self:
        return cls.at(
            place,
            f"{column!r} is no time attribute: {why}",
            "use the column that the table's WATERMARK is declared for, or one that is PROCTIME()",
        )

    @classmethod
    def needs_append_only(cls, place: Place | None, what: str, maker: str) -> Self:
        return cls.at(
            place,
            f"{what} needs rows that are only added, and {maker} below it changes rows",
            "do it before the step that makes changes, or use windows there",
        )

    @classmethod
    def wrong_count(cls, place: Place | None, what: str, given: int, needed: int) -> Self:
        return cls.at(place, f"{what} has {given} columns where {needed} are needed", "give as many")

    @classmethod
    def wrong_type(cls, place: Place | None, what: str, given: str, needed: str) -> Self:
        return cls.at(place, f"{what} is of type {given} where {needed} is needed", "cast it")

    @classmethod
    def already_there(cls, place: Place | None, kind: str, name: str) -> Self:
        return cls.at(place, f"there is a {kind} {name!r} already", "drop it first, or choose another name")

    @classmethod
    def bad_option(cls, place: Place | None, table: str, option: str, problem: str, action: str) -> Self:
        return cls.at(place, f"table {table!r}: option {option!r} {problem}", action)

    @classmethod
    def no_option(cls, place: Place | None, table: str, option: str, example: str = "") -> Self:
        example = example or f"'{option}' = '…'"
        return cls.at(place, f"table {table!r} needs the option {option!r}", f"write {example}")

    @classmethod
    def unknown_option(cls, place: Place | None, table: str, option: str, connector: str, known: Iterable[str]) -> Self:
        known = list(known)
        return cls.at(
            place,
            f"table {table!r}: {connector} has no option {option!r}{nearest(option, known)}",
            f"the options are {', '.join(known)}",
        )

    @classmethod
    def bad_table(cls, place: Place | None, table: str, problem: str) -> Self:
        return cls.at(place, f"table {table!r} cannot be made: {problem}", "change its columns or options")

    @classmethod
    def no_metadata(cls, place: Place | None, table: str, column: str, key: str, known: Iterable[str]) -> Self:
        known = list(known)
        return cls.at(
            place,
            f"column {column!r} of table {table!r}: the connector has no METADATA {key!r}{nearest(key, known)}",
            f"there is {', '.join(known)}" if known else "leave the column out",
        )

    @classmethod
    def reserved(cls, place: Place | None, name: str) -> Self:
        return cls.at(place, f"names such as {name!r} are our own", "choose another name")

    @classmethod
    def sink_takes_no_changes(cls, place: Place | None, table: str, sink: str, maker: str) -> Self:
        return cls.at(
            place,
            f"table {table!r} ({sink}) only takes rows that are added, and {maker} changes rows",
            "declare a PRIMARY KEY with a connector that upserts (postgres, upsert-kafka), or make the query only add "
            "rows, by a window for example",
        )

    @classmethod
    def needs_value(cls, place: Place | None, column: str) -> Self:
        return cls.at(
            place, f"column {column!r} is NOT NULL, and the INSERT leaves it out", "name it, and give it a value"
        )

    @classmethod
    def written_already(cls, place: Place | None, table: str) -> Self:
        return cls.at(
            place,
            f"the job writes to table {table!r} already",
            "write one INSERT with UNION ALL, or put both into one script or statement set",
        )

    @classmethod
    def wrong_setting(cls, place: Place | None, key: str, value: str, only: str, action: str) -> Self:
        return cls.at(place, f"setting {key!r} can only be {only!r}; got {short(value)}", action)

    @classmethod
    def unknown_setting(cls, place: Place | None, key: str, known: Iterable[str]) -> Self:
        return cls.at(place, f"there is no setting {key!r}{nearest(key, known)}", "leave it out")

    @classmethod
    def bad_argument(cls, step: str, rule: str, got: object, action: str) -> Self:
        return cls.at(None, f"{step} {rule}; got {short(got)}", action)
