"""State declarations: what a function keeps, per key or per subtask, by name and Spark DDL type.

A declaration is a class attribute of a function. When a job opens the function, the runtime puts a handle with the same
methods in its place on the instance; before that, using it is an error.

What values are in Python is known to type checkers where the DDL type is a common one, `int` for "long"; else it is Any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Generic, NoReturn, TypeVar, overload

import pyarrow as pa

from headwater.data.rows import converter
from headwater.data.schema import parse_type
from headwater.errors import StateError
from headwater.expiry import Ttl, checked
from headwater.functions import AggregateFunction
from headwater.words import BooleanType, FloatType, IntType, StringType, TimestampType

K = TypeVar("K")
T = TypeVar("T")
D = TypeVar("D")
In = TypeVar("In")
Out = TypeVar("Out")


class StateDeclaration:
    """What all declarations share: a name, taken from the attribute unless given, and a kind."""

    kind = ""
    is_per_window = False

    def __init__(self, name: str | None, ttl: Ttl | None = None) -> None:
        self.name = name or ""
        self.ttl = checked(ttl, self.name)
        self.attribute = ""

    def __set_name__(self, owner: type, attribute: str) -> None:
        self.name = self.name or attribute

    def clear(self) -> None:
        """Remove this state of the current key."""
        self._not_open()

    def columns(self) -> list[tuple[str, pa.DataType]]:
        """The typed columns, after the key, of this state as a table; the last one of state with a ttl are its times."""
        return [*self.own_columns(), *([] if self.ttl is None else [self.ttl.column])]

    def own_columns(self) -> list[tuple[str, pa.DataType]]:
        """The columns without that of times."""
        raise NotImplementedError

    def _not_open(self) -> NoReturn:
        raise StateError.not_open(self.name)


class ValueState(StateDeclaration, Generic[T]):
    """One value per key.

    `ValueState("double", default=0.0)` is named after its attribute, `ValueState("total", "double")` names itself.
    """

    kind = "value"

    @overload
    def __init__(
        self: ValueState[int], ddl: IntType, /, *, default: int, name: str | None = ..., ttl: Ttl | None = ...
    ) -> None: ...
    @overload
    def __init__(
        self: ValueState[float], ddl: FloatType, /, *, default: float, name: str | None = ..., ttl: Ttl | None = ...
    ) -> None: ...
    @overload
    def __init__(
        self: ValueState[str], ddl: StringType, /, *, default: str, name: str | None = ..., ttl: Ttl | None = ...
    ) -> None: ...
    @overload
    def __init__(
        self: ValueState[bool], ddl: BooleanType, /, *, default: bool, name: str | None = ..., ttl: Ttl | None = ...
    ) -> None: ...
    @overload
    def __init__(
        self: ValueState[datetime],
        ddl: TimestampType,
        /,
        *,
        default: datetime,
        name: str | None = ...,
        ttl: Ttl | None = ...,
    ) -> None: ...
    @overload
    def __init__(
        self: ValueState[int | None], ddl: IntType, /, *, name: str | None = ..., ttl: Ttl | None = ...
    ) -> None: ...
    @overload
    def __init__(
        self: ValueState[float | None], ddl: FloatType, /, *, name: str | None = ..., ttl: Ttl | None = ...
    ) -> None: ...
    @overload
    def __init__(
        self: ValueState[str | None], ddl: StringType, /, *, name: str | None = ..., ttl: Ttl | None = ...
    ) -> None: ...
    @overload
    def __init__(
        self: ValueState[bool | None], ddl: BooleanType, /, *, name: str | None = ..., ttl: Ttl | None = ...
    ) -> None: ...
    @overload
    def __init__(
        self: ValueState[datetime | None], ddl: TimestampType, /, *, name: str | None = ..., ttl: Ttl | None = ...
    ) -> None: ...
    @overload
    def __init__(
        self: ValueState[Any], *name_and_type: str, default: Any = ..., name: str | None = ..., ttl: Ttl | None = ...
    ) -> None: ...

    def __init__(
        self, *name_and_type: str, default: Any = None, name: str | None = None, ttl: Ttl | None = None
    ) -> None:
        name, (ddl,) = _name_and_types(self.kind, name, name_and_type, 1)
        super().__init__(name, ttl)
        self.type = parse_type(ddl)
        self.default = default if default is None else self._checked(default)

    def get(self) -> T:
        """The current key's value, or the default."""
        self._not_open()

    def set(self, value: T | None) -> None:
        """Keep `value` for the current key; None removes it."""
        self._not_open()

    def own_columns(self) -> list[tuple[str, pa.DataType]]:
        return [("value", self.type)]

    def _checked(self, default: Any) -> Any:
        try:
            return converter(self.type)(default)
        except (TypeError, ValueError, OverflowError, ArithmeticError) as error:
            raise StateError.bad_default(self.name, default, self.type, str(error)) from None


class ListState(StateDeclaration, Generic[T]):
    """A list per key; appending costs what is appended."""

    kind = "list"

    @overload
    def __init__(self: ListState[int], ddl: IntType, /, *, name: str | None = ..., ttl: Ttl | None = ...) -> None: ...
    @overload
    def __init__(
        self: ListState[float], ddl: FloatType, /, *, name: str | None = ..., ttl: Ttl | None = ...
    ) -> None: ...
    @overload
    def __init__(
        self: ListState[str], ddl: StringType, /, *, name: str | None = ..., ttl: Ttl | None = ...
    ) -> None: ...
    @overload
    def __init__(
        self: ListState[bool], ddl: BooleanType, /, *, name: str | None = ..., ttl: Ttl | None = ...
    ) -> None: ...
    @overload
    def __init__(
        self: ListState[datetime], ddl: TimestampType, /, *, name: str | None = ..., ttl: Ttl | None = ...
    ) -> None: ...
    @overload
    def __init__(self: ListState[Any], *name_and_type: str, name: str | None = ..., ttl: Ttl | None = ...) -> None: ...

    def __init__(self, *name_and_type: str, name: str | None = None, ttl: Ttl | None = None) -> None:
        name, (ddl,) = _name_and_types(self.kind, name, name_and_type, 1)
        super().__init__(name, ttl)
        self.type = parse_type(ddl)

    def get(self) -> list[T]:
        """A copy of the current key's list."""
        self._not_open()

    def first(self) -> T | None:
        """The first element, None if there is none; the others are not looked at."""
        self._not_open()

    def last(self) -> T | None:
        """The last element, None if there is none; the others are not looked at."""
        self._not_open()

    def add(self, value: T) -> None:
        """Append one value."""
        self._not_open()

    def add_all(self, values: Iterable[T]) -> None:
        """Append all values, in order."""
        self._not_open()

    def update(self, values: Iterable[T]) -> None:
        """Replace the list."""
        self._not_open()

    def own_columns(self) -> list[tuple[str, pa.DataType]]:
        return [("index", pa.int64()), ("value", self.type)]


class OperatorListState(ListState[T]):
    """A list per subtask, in a `ProcessFunction`. At another parallelism all elements are dealt out evenly."""

    kind = "operator_list"

    def get(self) -> list[T]:
        """A copy of the list."""
        self._not_open()

    def clear(self) -> None:
        """Remove all elements."""
        self._not_open()


class UnionListState(OperatorListState[T]):
    """A list per subtask, in a `ProcessFunction`. At another parallelism every subtask gets the elements of all."""

    kind = "union_list"


class MapState(StateDeclaration, Generic[K, T]):
    """A dictionary per key; changing an entry costs that entry. Iterates in the order of insertion."""

    kind = "map"

    @overload
    def __init__(
        self: MapState[int, int], key: IntType, value: IntType, /, *, name: str | None = ..., ttl: Ttl | None = ...
    ) -> None: ...
    @overload
    def __init__(
        self: MapState[int, float], key: IntType, value: FloatType, /, *, name: str | None = ..., ttl: Ttl | None = ...
    ) -> None: ...
    @overload
    def __init__(
        self: MapState[int, str], key: IntType, value: StringType, /, *, name: str | None = ..., ttl: Ttl | None = ...
    ) -> None: ...
    @overload
    def __init__(
        self: MapState[str, int], key: StringType, value: IntType, /, *, name: str | None = ..., ttl: Ttl | None = ...
    ) -> None: ...
    @overload
    def __init__(
        self: MapState[str, float],
        key: StringType,
        value: FloatType,
        /,
        *,
        name: str | None = ...,
        ttl: Ttl | None = ...,
    ) -> None: ...
    @overload
    def __init__(
        self: MapState[str, str],
        key: StringType,
        value: StringType,
        /,
        *,
        name: str | None = ...,
        ttl: Ttl | None = ...,
    ) -> None: ...
    @overload
    def __init__(
        self: MapState[Any, Any], *name_and_types: str, name: str | None = ..., ttl: Ttl | None = ...
    ) -> None: ...

    def __init__(self, *name_and_types: str, name: str | None = None, ttl: Ttl | None = None) -> None:
        name, (key_ddl, value_ddl) = _name_and_types(self.kind, name, name_and_types, 2)
        super().__init__(name, ttl)
        self.key_type, self.value_type = parse_type(key_ddl), parse_type(value_ddl)

    @overload
    def get(self, entry: K) -> T | None: ...
    @overload
    def get(self, entry: K, default: D) -> T | D: ...

    def get(self, entry: K, default: Any = None) -> Any:
        """The value of one entry, or the default."""
        self._not_open()

    def put(self, entry: K, value: T | None) -> None:
        """Set one entry; None removes it."""
        self._not_open()

    def put_all(self, entries: Mapping[K, T]) -> None:
        """Set many entries."""
        self._not_open()

    def remove(self, entry: K) -> None:
        """Remove one entry if it is there."""
        self._not_open()

    def contains(self, entry: K) -> bool:
        """Whether the entry is there."""
        self._not_open()

    def keys(self) -> list[K]:
        """The entries' keys."""
        self._not_open()

    def values(self) -> list[T]:
        """The entries' values."""
        self._not_open()

    def items(self) -> list[tuple[K, T]]:
        """The entries."""
        self._not_open()

    def is_empty(self) -> bool:
        """Whether the current key has no entry."""
        self._not_open()

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())

    def __contains__(self, entry: K) -> bool:
        return self.contains(entry)

    def own_columns(self) -> list[tuple[str, pa.DataType]]:
        return [("entry", self.key_type), ("value", self.value_type)]


class ReducingState(StateDeclaration, Generic[T]):
    """One value per key, combined with each added value by `reduce(kept, added)`."""

    kind = "reducing"

    @overload
    def __init__(
        self: ReducingState[int],
        ddl: IntType,
        /,
        *,
        reduce: Callable[[int, int], int],
        name: str | None = ...,
        ttl: Ttl | None = ...,
    ) -> None: ...
    @overload
    def __init__(
        self: ReducingState[float],
        ddl: FloatType,
        /,
        *,
        reduce: Callable[[float, float], float],
        name: str | None = ...,
        ttl: Ttl | None = ...,
    ) -> None: ...
    @overload
    def __init__(
        self: ReducingState[str],
        ddl: StringType,
        /,
        *,
        reduce: Callable[[str, str], str],
        name: str | None = ...,
        ttl: Ttl | None = ...,
    ) -> None: ...
    @overload
    def __init__(
        self: ReducingState[Any],
        *name_and_type: str,
        reduce: Callable[[Any, Any], Any],
        name: str | None = ...,
        ttl: Ttl | None = ...,
    ) -> None: ...

    def __init__(
        self, *name_and_type: str, reduce: Callable[[Any, Any], Any], name: str | None = None, ttl: Ttl | None = None
    ) -> None:
        name, (ddl,) = _name_and_types(self.kind, name, name_and_type, 1)
        super().__init__(name, ttl)
        self.type = parse_type(ddl)
        self.reduce = reduce

    def get(self) -> T | None:
        """The combined value, or None when nothing was added."""
        self._not_open()

    def add(self, value: T) -> None:
        """Combine one value in."""
        self._not_open()

    def own_columns(self) -> list[tuple[str, pa.DataType]]:
        return [("value", self.type)]


class AggregatingState(StateDeclaration, Generic[In, Out]):
    """One accumulator per key of the declared type; values go in and the function's result comes out."""

    kind = "aggregating"

    def __init__(
        self,
        *name_and_type: str,
        aggregate: AggregateFunction[In, Any, Out],
        name: str | None = None,
        ttl: Ttl | None = None,
    ) -> None:
        name, (ddl,) = _name_and_types(self.kind, name, name_and_type, 1)
        super().__init__(name, ttl)
        self.type = parse_type(ddl)
        self.aggregate = aggregate

    def get(self) -> Out | None:
        """The function's result for what was added, or None when nothing was."""
        self._not_open()

    def add(self, value: In) -> None:
        """Add one value to the accumulator."""
        self._not_open()

    def own_columns(self) -> list[tuple[str, pa.DataType]]:
        return [("value", self.type)]


Declaration = TypeVar("Declaration", bound=StateDeclaration)


def per_window(declaration: Declaration) -> Declaration:
    """Keep a state for each window, not for the key; it is gone with its window.

    In a `ProcessWindowFunction`: `seen = per_window(ValueState("bigint"))`.
    """
    declaration.is_per_window = True
    return declaration


def state_of_type(declaration: Declaration, dtype: pa.DataType) -> Declaration:
    """The declaration, of a type that is known as an Arrow type only."""
    declaration.attribute, declaration.type = declaration.name, dtype  # type: ignore[attr-defined]
    return declaration


def _name_and_types(
    kind: str, name: str | None, given: tuple[str, ...], types: int
) -> tuple[str | None, tuple[str, ...]]:
    if len(given) == types + 1 and name is None:
        return given[0], given[1:]
    if len(given) == types:
        return name, given
    raise TypeError(f"{kind} state takes {types} DDL type(s), optionally with its name in front; got {given!r}")
