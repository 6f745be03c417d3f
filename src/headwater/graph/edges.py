"""Keys, exchanges and edges: how rows get from one step to the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headwater.data.schema import Schema, parse_type, type_ddl
from headwater.data.types import is_key_type
from headwater.errors import GraphError, StateError

KeyPart = str | Callable[[Any], Any]
"""A column, or a function of a row."""
On = str | Sequence[str] | Mapping[str, str]
"""The columns that two sides are joined on: of the same names, or the left ones with the right ones."""
Partitioner = Callable[[Any, int], int]
"""Gets a key and the number of subtasks; gives the subtask, counted from 0."""


@dataclass(frozen=True)
class Key:
    """How a stream is keyed: by columns, or by a function whose result has the declared type."""

    columns: tuple[str, ...]
    function: Callable[[Any], Any] | None
    type: pa.DataType

    @classmethod
    def of(cls, rows: Schema, parts: tuple[KeyPart, ...], dtype: str | None = None, *, step: str = "key_by") -> Key:
        """A key of columns, or of one function together with the DDL type of its result, checked against the rows."""
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
            key = cls((), functions[0], parse_type(dtype))
        else:
            fields = [rows.field(column) for column in columns]
            whole = fields[0].type if len(fields) == 1 else pa.struct([pa.field(f.name, f.type) for f in fields])
            key = cls(columns, None, whole)
        if not is_key_type(key.type):
            raise StateError.bad_key_type(step, key.type)
        return key

    @property
    def is_nothing(self) -> bool:
        """Whether all rows have one key, as for `window_all`."""
        return not self.columns and self.function is None

    @property
    def parts(self) -> pa.DataType | list[pa.DataType]:
        """The type, or the types of the parts without their names, which need not be the same where keys meet."""
        return [field.type for field in self.type] if pa.types.is_struct(self.type) else self.type

    def fields(self, rows: Schema) -> list[pa.Field]:
        """The columns in which results show the key: its own, or `key` for a function's result."""
        if self.function is not None:
            return [pa.field("key", self.type)]
        return [rows.field(column) for column in self.columns]

    def describe(self) -> str:
        return ", ".join(self.columns) if self.function is None else f"{_name_of(self.function)}()"

    def typed(self) -> str:
        """The key and its type, in words."""
        return f"{self.describe()}: {type_ddl(self.type)}"


NO_KEY = Key((), None, pa.bool_())


@dataclass(frozen=True)
class Exchange:
    """How rows get from a step to the next: 'forward' stays in place, the others move rows between subtasks."""

    kind: str
    key: Key | None = None
    partitioner: Partitioner | None = None
    """For 'custom': chooses the subtask by the key."""

    @property
    def moves(self) -> bool:
        return self.kind != "forward"

    def describe(self) -> str:
        if self.key is None:
            return self.kind
        if self.partitioner is not None:
            return f"partition_custom({_name_of(self.partitioner)}, {self.key.describe()})"
        return f"key_by({self.key.describe()})"


FORWARD, REBALANCE = Exchange("forward"), Exchange("rebalance")
BROADCAST, GLOBAL = Exchange("broadcast"), Exchange("global")


LEFT, RIGHT = 0, 1
"""The inputs of a step that has two."""


@dataclass(frozen=True)
class Edge:
    """One connection: from a node, or from a node's side output, by an exchange, into one side of a step."""

    source: int
    tag: str | None
    exchange: Exchange
    side: int = LEFT


def joined_columns(on: Any, step: str) -> dict[str, str]:
    """The left columns that a join is on, each with its right one."""
    pairs = dict(on) if isinstance(on, Mapping) else {name: name for name in ([on] if isinstance(on, str) else on)}
    if not pairs or not all(isinstance(name, str) for pair in pairs.items() for name in pair):
        raise GraphError.bad_argument(step, "needs columns to join on", on, "write on='user' or on={'user': 'id'}")
    return pairs


def _name_of(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)
