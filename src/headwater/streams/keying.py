"""What users write as a key, checked against the rows it is taken from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from headwater.data.schema import Schema, parse_type
from headwater.errors import GraphError, StateError
from headwater.graph.nodes import Key
from headwater.state.keys import is_key_type

On = str | Sequence[str] | Mapping[str, str]
"""The columns that two sides are joined on: of the same names, or the left ones with the right ones."""
KeyPart = str | Callable[[Any], Any]
"""A column, or a function of a row."""


def key_of(schema: Schema, parts: tuple[KeyPart, ...], dtype: str | None, step: str) -> Key:
    """A key of columns, or of one function together with the DDL type of its result."""
    columns = tuple(part for part in parts if isinstance(part, str))
    functions = [part for part in parts if not isinstance(part, str)]
    if not parts or (functions and (columns or len(functions) > 1)):
        raise GraphError.bad_argument(step, "needs column names or one function", parts, f"write {step}('user')")
    if functions:
        if not callable(functions[0]):
            raise GraphError.bad_argument(step, "needs a function", functions[0], "pass a function or lambda")
        if dtype is None:
            raise GraphError.bad_argument(
                step, "needs the type of a function's result", functions[0], "add type='string' or another DDL type"
            )
        key = Key((), functions[0], parse_type(dtype))
    else:
        fields = [schema.field(column) for column in columns]
        whole = fields[0].type if len(fields) == 1 else pa.struct([pa.field(f.name, f.type) for f in fields])
        key = Key(columns, None, whole)
    if not is_key_type(key.type):
        raise StateError.bad_key_type(step, key.type)
    return key


def joined_columns(on: Any, step: str) -> dict[str, str]:
    """The left columns that a join is on, each with its right one."""
    pairs = dict(on) if isinstance(on, Mapping) else {name: name for name in ([on] if isinstance(on, str) else on)}
    if not pairs or not all(isinstance(name, str) for pair in pairs.items() for name in pair):
        raise GraphError.bad_argument(step, "needs columns to join on", on, "write on='user' or on={'user': 'id'}")
    return pairs
