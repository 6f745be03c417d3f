"""Avro schemas that records of somebody else can be read with: a few bytes must not become much memory, or a deep stack."""

from __future__ import annotations

from collections.abc import Collection
from decimal import Context, Decimal
from typing import Any

SAFE_DECIMAL = "headwater-decimal"
"""The logical type by which decimals are read here: fastavro's own takes minutes for a megabyte of digits."""
_MOST_DECIMAL_BYTES = 64
"""Of a number: 38 digits have 16 bytes, and some writers fill up with more."""
_CONTEXT = Context(prec=200)


def refuse_unsafe(schema: Any) -> None:
    """`ValueError` for a schema, as it was parsed, that contains itself, or has lists with items without a byte each."""
    _look(schema, {}, ())


def _look(schema: Any, known: dict[str, Any], inside: Collection[str]) -> None:
    if isinstance(schema, str) and schema in inside:
        raise ValueError(f"{schema} contains itself, so that a record could be of any depth")
    if isinstance(schema, dict) and "name" in schema:
        known[schema["name"]] = schema
    for around, inner in _parts(schema, inside):
        _look(inner, known, around)
    if _is(schema, "array") and _takes_nothing(schema["items"], known):
        raise ValueError("the items of an array take no bytes, so that a few bytes could be any number of them")


def with_safe_decimals(schema: Any) -> Any:
    """The same schema, with `SAFE_DECIMAL` in place of decimals of any length."""
    if isinstance(schema, list):
        return [with_safe_decimals(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {
        name: with_safe_decimals(value) if name in ("type", "items", "values") else value
        for name, value in schema.items()
    }
    if _is(schema, "bytes") and schema.get("logicalType") == "decimal":
        found["logicalType"] = SAFE_DECIMAL
    if "fields" in schema:
        found["fields"] = [with_safe_decimals(field) for field in schema["fields"]]
    return found


def safe_decimal(data: Any, written: dict[Any, Any] | None, _: dict[Any, Any] | None = None) -> Decimal:
    """A decimal of a length that decimals have."""
    if len(data) > _MOST_DECIMAL_BYTES:
        raise ValueError(f"a decimal has {len(data)} bytes, and {_MOST_DECIMAL_BYTES} is the most")
    unscaled = int.from_bytes(data, "big", signed=True)
    return _CONTEXT.create_decimal(unscaled).scaleb(-(written or {}).get("scale", 0), _CONTEXT)


def _parts(schema: Any, inside: Collection[str]) -> list[tuple[Collection[str], Any]]:
    """The schemas that one is made of, each with the names of the records around it."""
    if isinstance(schema, list):
        return [(inside, one) for one in schema]
    if not isinstance(schema, dict):
        return []
    if "fields" in schema:
        return [({*inside, schema["name"]}, field["type"]) for field in schema["fields"]]
    return [
        (inside, schema[name])
        for name in ("type", "items", "values")
        if isinstance(schema.get(name), dict | list | str)
    ]


def _takes_nothing(schema: Any, known: dict[str, Any]) -> bool:
    schema = known.get(schema, schema) if isinstance(schema, str) else schema
    if isinstance(schema, dict) and "fields" in schema:
        return all(_takes_nothing(field["type"], known) for field in schema["fields"])
    return schema == "null" or _is(schema, "null") or (_is(schema, "fixed") and schema["size"] == 0)


def _is(schema: Any, kind: str) -> bool:
    return isinstance(schema, dict) and schema.get("type") == kind
