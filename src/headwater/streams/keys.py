"""What rows are keyed by, out of what a user gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from headwater.errors import GraphError, StateError
from headwater.graph.nodes import Key
from headwater.schema import Schema, parse_type
from headwater.state.keys import is_key_type


def key_of(schema: Schema, step: str, given: Sequence[Any], ddl: str | None) -> Key:
    """Columns, or one function together with the DDL type of its result."""
    columns = tuple(k for k in given if isinstance(k, str))
    functions = [k for k in given if not isinstance(k, str)]
    if not given or (functions and (columns or len(functions) > 1)):
        raise GraphError.bad_argument(
            step, "needs column names or one function", given, "name a column, such as 'user'"
        )
    if functions:
        if ddl is None:
            raise GraphError.bad_argument(
                step, "needs the type of a function's result", functions[0], "add type='string' or another DDL type"
            )
        key = Key((), checked_function(step, functions[0]), parse_type(ddl))
    else:
        fields = [schema.field(column) for column in columns]
        dtype = fields[0].type if len(fields) == 1 else pa.struct([pa.field(f.name, f.type) for f in fields])
        key = Key(columns, None, dtype)
    if not is_key_type(key.type):
        raise StateError.bad_key_type(step, key.type)
    return key


def checked_function(step: str, function: Any) -> Any:
    """The function, if it is one."""
    if not callable(function):
        raise GraphError.bad_argument(step, "needs a function", function, "pass a function or lambda")
    return function
