"""SHOW and DESCRIBE: what the catalog has, without what is secret."""

from __future__ import annotations

from typing import Any, NamedTuple

from headwater.data.functions import FAMILIES
from headwater.data.functions.types import Type
from headwater.sql.bind.scan import scanned
from headwater.sql.catalog import Catalog, Table
from headwater.sql.errors import SqlError
from headwater.sql.relations import EVENT, PROCESSING, Field, Relation
from headwater.sql.text.places import Place
from headwater.sql.text.secrets import SHOWN_INSTEAD, is_secret
from headwater.sql.text.statements import Describe, Show


class Named(NamedTuple):
    """A table, a view or a function."""

    name: str


class Made(NamedTuple):
    """The statement that makes a table or a view."""

    statement: str


class Column(NamedTuple):
    """A column, as DESCRIBE shows it."""

    name: str
    type: str
    null: bool
    key: str | None
    extras: str | None
    watermark: str | None


def show(catalog: Catalog, statement: Show) -> list[Any]:
    """Names, or the one statement that would make a table again."""
    if statement.what == "tables":
        return [Named(name) for name in sorted([*catalog.tables(), *catalog.views()])]
    if statement.what == "views":
        return [Named(name) for name in catalog.views()]
    if statement.what == "functions":
        return [
            Named(name) for name in sorted({name for family in FAMILIES.values() for f in family for name in f.names})
        ]
    found = _found(catalog, statement.name, statement.place)
    if isinstance(found, Table):
        if found.declared is None:
            raise SqlError.not_supported(
                statement.place, f"showing table {statement.name!r}, which Python has made,", "use DESCRIBE"
            )
        return [Made(create_text(found))]
    return [Made(f"CREATE VIEW {name_text(statement.name)} AS\n{catalog.text_of(statement.name)}")]


def describe(catalog: Catalog, statement: Describe) -> list[Column]:
    """The columns of a table or view."""
    found = _found(catalog, statement.name, statement.place)
    relation: Relation = scanned(found) if isinstance(found, Table) else found
    declared = found.declared if isinstance(found, Table) else None
    extras: dict[str, str] = {}
    for column in () if declared is None else declared.columns:
        if column.computed is not None:
            extras[column.name] = f"AS {column.computed_text}"
        elif column.metadata is not None:
            extras[column.name] = f"METADATA FROM {_literal(column.metadata)}{' VIRTUAL' if column.is_virtual else ''}"
    mark = None if declared is None or declared.watermark is None else declared.watermark.text
    key = relation.key or ()
    key_text = f"PRI({', '.join(key)})" if isinstance(found, Table) and key else None
    return [
        Column(
            field.name,
            type_text(field.type) + _time_text(field),
            field.is_nullable,
            key_text if field.name in key else None,
            extras.get(field.name),
            mark if field.time == EVENT else None,
        )
        for field in relation.fields
    ]


def create_text(table: Table) -> str:
    """The statement that makes the table again; secrets are left out."""
    declared = table.declared
    assert declared is not None
    types = {field.name: field for field in table.fields}
    lines = []
    for column in declared.columns:
        if column.computed is not None:
            lines.append(f"{name_text(column.name)} AS {column.computed_text}")
            continue
        line = f"{name_text(column.name)} {type_text(types[column.name].type)}"
        line += "" if column.is_nullable else " NOT NULL"
        if column.metadata is not None:
            line += f" METADATA FROM {_literal(column.metadata)}{' VIRTUAL' if column.is_virtual else ''}"
        lines.append(line)
    if declared.watermark is not None:
        lines.append(f"WATERMARK FOR {name_text(str(table.time))} AS {declared.watermark.text}")
    if declared.primary_key:
        lines.append(f"PRIMARY KEY ({', '.join(map(name_text, declared.primary_key))}) NOT ENFORCED")
    by = f" PARTITIONED BY ({', '.join(map(name_text, declared.partitioned_by))})" if declared.partitioned_by else ""
    options = [
        f"{_literal(key)} = {_literal(SHOWN_INSTEAD if is_secret(key, value) else value)}"
        for key, value in declared.options.items()
    ]
    return (
        f"CREATE TABLE {name_text(table.name)} (\n  "
        + ",\n  ".join(lines)
        + f"\n){by} WITH (\n  "
        + ",\n  ".join(options)
        + "\n)"
    )


def type_text(of: Type) -> str:
    """A type as Flink writes it."""
    if of.kind == "decimal":
        return f"DECIMAL({of.precision}, {of.scale})"
    if of.is_timestamp:
        return f"{of.kind.upper()}({of.precision})"
    if of.kind in ("array", "map"):
        return f"{of.kind.upper()}<{', '.join(type_text(part) for part in of.parts)}>"
    if of.kind == "row":
        fields = zip(of.names, of.parts, strict=True)
        return f"ROW<{', '.join(f'{name_text(name)} {type_text(part)}' for name, part in fields)}>"
    return "BYTES" if of.kind == "binary" else of.kind.upper()


def name_text(name: str) -> str:
    """A name in backticks, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _time_text(field: Field) -> str:
    return {EVENT: " *ROWTIME*", PROCESSING: " *PROCTIME*"}.get(field.time or "", "")


def _found(catalog: Catalog, name: str, place: Place) -> Table | Relation:
    found = catalog.get(name)
    if found is None:
        raise SqlError.no_table(place, name, list(catalog))
    return found
