"""State of one type as state of another: fields added, dropped and renamed, numbers widened; nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from headwater.errors import SchemaError
from headwater.runtime.saved.errors import Impossible
from headwater.schema import type_ddl

_INTEGERS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
"""With the digits that each can have."""
_EXACT_IN_DOUBLE = {pa.int8(), pa.int16(), pa.int32(), pa.float32()}


@dataclass
class Evolution:
    """Turns columns into those of another schema and notes what it did."""

    renamed: Mapping[str, str] = field(default_factory=dict)
    """By path of columns and fields as they were: the new name of the last part."""
    notes: list[str] = field(default_factory=list)

    def table(self, table: pa.Table, schema: pa.Schema, key_columns: frozenset[str] = frozenset()) -> pa.Table:
        """The table under another schema. A column that makes the key must have been there, with the same type."""
        found = self._by_new_name("", table.column_names)
        columns = []
        for wanted in schema:
            old_name = found.pop(wanted.name, None)
            if old_name is None:
                if wanted.name in key_columns:
                    raise Impossible(
                        f"key column {wanted.name!r} is not in it, which has {', '.join(table.column_names)}"
                    )
                self._note(f"column {wanted.name!r} added")
                columns.append(pa.nulls(len(table), wanted.type))
                continue
            column = table[old_name].combine_chunks()
            if wanted.name == "key" or wanted.name in key_columns:
                columns.append(_same_key(column, wanted.type))
            else:
                columns.append(self._array(column, wanted.type, old_name))
        for name in found.values():
            self._note(f"column {name!r} dropped")
        return pa.Table.from_arrays(columns, schema=schema)

    def _array(self, array: pa.Array, wanted: pa.DataType, path: str) -> pa.Array:
        if array.type == wanted:
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
        if not is_widening(array.type, wanted):
            raise Impossible(_changed(path, array.type, wanted))
        self._note(_changed(path, array.type, wanted))
        return array.cast(wanted)

    def _struct(self, array: pa.Array, wanted: pa.DataType, path: str) -> pa.Array:
        old = {child.name: values for child, values in zip(array.type, array.flatten(), strict=True)}
        found = self._by_new_name(f"{path}.", list(old))
        children = []
        for child in wanted:
            old_name = found.pop(child.name, None)
            if old_name is None:
                if not child.nullable:
                    raise Impossible(f"field {path}.{child.name} is new and must not be null, so it has no value")
                self._note(f"field {path}.{child.name} added")
                children.append(pa.nulls(len(array), child.type))
            else:
                children.append(self._array(old[old_name], child.type, f"{path}.{old_name}"))
        for name in found.values():
            self._note(f"field {path}.{name} dropped")
        return pa.StructArray.from_arrays(children, fields=list(wanted), mask=array.is_null())

    def _by_new_name(self, prefix: str, names: list[str]) -> dict[str, str]:
        """The old names by the new ones."""
        found = {}
        for name in names:
            new = self.renamed.get(f"{prefix}{name}", name)
            if new != name:
                self._note(f"{prefix}{name} renamed to {new!r}")
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
    return column.cast(wanted) if not pa.types.is_struct(wanted) else _renamed_struct(column, wanted)


def _renamed_struct(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    children = [_same_key(child, to.type) for child, to in zip(column.flatten(), wanted, strict=True)]
    return pa.StructArray.from_arrays(children, fields=list(wanted), mask=column.is_null())


def _without_names(dtype: pa.DataType) -> object:
    if pa.types.is_struct(dtype):
        return tuple(_without_names(child.type) for child in dtype)
    return dtype


def _in_one_piece(array: pa.Array) -> pa.Array:
    """The same array without an offset into its buffers."""
    return array.take(pa.array(range(len(array)), pa.int64()))


def _changed(what: str, old: pa.DataType, new: pa.DataType) -> str:
    return f"{what} was {_text(old)}, is {_text(new)}"


def _text(dtype: pa.DataType) -> str:
    try:
        return type_ddl(dtype)
    except SchemaError:  # a type that only accumulators have
        return str(dtype)
