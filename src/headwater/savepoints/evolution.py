"""State of one type as state of another: fields added, dropped and renamed, numbers widened; nothing else."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from headwater.data.schema import type_ddl
from headwater.errors import SchemaError
from headwater.savepoints.errors import Impossible

_INTEGERS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
"""With the digits that each can have."""
_EXACT_IN_DOUBLE = {pa.int8(), pa.int16(), pa.int32(), pa.float32()}


@dataclass
class Evolution:
    """Turns columns into those of another schema and notes what it did.

    A path names a column, or a field below it: `value.address.city`. Lists and maps add no name of their own.
    """

    renamed: Mapping[str, str] = field(default_factory=dict)
    """By path of columns and fields as they were: the new name of the last part."""
    notes: list[str] = field(default_factory=list)
    _met: set[str] = field(default_factory=set)
    """The paths that there are."""

    def table(self, table: pa.Table, schema: pa.Schema, key: Collection[str] = ()) -> pa.Table:
        """The table under another schema. The columns in `key` must be there already, with the same type."""
        found = self._by_new_name("", table.column_names, schema.names)
        columns = []
        for wanted in schema:
            old_name = found.pop(wanted.name, None)
            if old_name is not None:
                column = table[old_name].combine_chunks()
                nullable = table.schema.field(old_name).nullable
                columns.append(
                    _same_key(column, wanted.type)
                    if wanted.name in key
                    else self._field(column, wanted, old_name, was_nullable=nullable)
                )
            elif wanted.name in key:
                raise Impossible(f"key column {wanted.name!r} is not in it, which has {', '.join(table.column_names)}")
            else:
                columns.append(self._added(wanted, wanted.name, len(table)))
        for name in found.values():
            self._note(f"{name} dropped")
        strange = [path for path in self.renamed if path not in self._met and path.partition(".")[0] not in key]
        if strange:
            raise Impossible(f"there is no {strange[0]} in it to be renamed to {self.renamed[strange[0]]!r}")
        return pa.Table.from_arrays(columns, schema=schema)

    def _added(self, wanted: pa.Field, path: str, rows: int) -> pa.Array:
        if not wanted.nullable:
            raise Impossible(f"{path} is new and must not be null, so that it has no value")
        self._note(f"{path} added")
        return pa.nulls(rows, wanted.type)

    def _field(self, array: pa.Array, wanted: pa.Field, path: str, *, was_nullable: bool) -> pa.Array:
        if was_nullable and not wanted.nullable:
            raise Impossible(f"{path} could be null, and must not be now")
        return self._array(array, wanted.type, path)

    def _array(self, array: pa.Array, wanted: pa.DataType, path: str) -> pa.Array:
        if array.type == wanted and not self.renamed:
            return array
        if pa.types.is_struct(array.type) and pa.types.is_struct(wanted):
            return self._struct(array, wanted, path)
        if pa.types.is_list(array.type) and pa.types.is_list(wanted):
            whole = _in_one_piece(array)
            values = self._array(whole.values, wanted.value_type, path)
            return pa.ListArray.from_arrays(whole.offsets, values, type=wanted, mask=whole.is_null())
        if pa.types.is_map(array.type) and pa.types.is_map(wanted):
            whole = _in_one_piece(array)
            if whole.type.key_type != wanted.key_type:
                raise Impossible(_changed(f"the keys of {path}", whole.type.key_type, wanted.key_type))
            items = self._array(whole.items, wanted.item_type, path)
            return pa.MapArray.from_arrays(whole.offsets, whole.keys, items, type=wanted, mask=whole.is_null())
        if array.type == wanted:
            return array
        if not is_widening(array.type, wanted):
            raise Impossible(_changed(path, array.type, wanted))
        self._note(_changed(path, array.type, wanted))
        return array.cast(wanted)

    def _struct(self, array: pa.Array, wanted: pa.DataType, path: str) -> pa.Array:
        old = {child.name: (child, values) for child, values in zip(array.type, array.flatten(), strict=True)}
        found = self._by_new_name(f"{path}.", list(old), [child.name for child in wanted])
        children = []
        for child in wanted:
            old_name = found.pop(child.name, None)
            if old_name is None:
                children.append(self._added(child, f"{path}.{child.name}", len(array)))
            else:
                before, values = old[old_name]
                inner = f"{path}.{old_name}"
                children.append(self._field(values, child, inner, was_nullable=before.nullable))
        for name in found.values():
            self._note(f"{path}.{name} dropped")
        return pa.StructArray.from_arrays(children, fields=list(wanted), mask=array.is_null())

    def _by_new_name(self, prefix: str, names: Sequence[str], wanted: Sequence[str]) -> dict[str, str]:
        """The old names by the new ones."""
        found: dict[str, str] = {}
        for name in names:
            path = f"{prefix}{name}"
            self._met.add(path)
            new = self.renamed.get(path, name)
            if new != name:
                if new not in wanted:
                    raise Impossible(f"{path} is to be renamed to {new!r}, which the program does not have")
                self._note(f"{path} renamed to {new!r}")
            if new in found:
                raise Impossible(f"{prefix}{found[new]} and {path} would both be {new!r}")
            found[new] = name
        return found

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)


def is_widening(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether every value of a type is one of another, exactly."""
    if pa.types.is_null(old):
        return True
    if old in _INTEGERS and new in _INTEGERS:
        return _INTEGERS[old] <= _INTEGERS[new]
    if new == pa.float64():
        return old in _EXACT_IN_DOUBLE
    if not pa.types.is_decimal(new):
        return False
    if old in _INTEGERS:
        return bool(new.precision - new.scale >= _INTEGERS[old])
    more = pa.types.is_decimal(old) and new.scale >= old.scale
    return bool(more and new.precision - new.scale >= old.precision - old.scale)


def _same_key(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Keys stay as they are; the columns they are made of may have other names."""
    if column.type == wanted:
        return column
    if _without_names(column.type) != _without_names(wanted):
        raise Impossible(_changed("the key", column.type, wanted))
    children = [_same_key(child, to.type) for child, to in zip(column.flatten(), wanted, strict=True)]
    return pa.StructArray.from_arrays(children, fields=list(wanted), mask=column.is_null())


def _without_names(dtype: pa.DataType) -> object:
    if pa.types.is_struct(dtype):
        return tuple(_without_names(child.type) for child in dtype)
    return dtype


def _in_one_piece(array: pa.Array) -> pa.Array:
    """The same array without an offset into its buffers."""
    return array.take(pa.array(np.arange(len(array))))


def _changed(what: str, old: pa.DataType, new: pa.DataType) -> str:
    return f"{what} was {_text(old)}, is {_text(new)}"


def _text(dtype: pa.DataType) -> str:
    try:
        return type_ddl(dtype)
    except SchemaError:  # a type that only accumulators have
        return str(dtype)
