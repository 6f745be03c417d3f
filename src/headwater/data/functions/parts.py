"""Parts of a value: a field of a row, an item of an array, the value of a key in a map."""

from __future__ import annotations

from headwater.data.functions.casts import converted
from headwater.data.functions.refusals import Refused
from headwater.data.functions.terms import Term
from headwater.data.functions.types import common_type, text_of


def field_of(term: Term, name: str) -> Term:
    """`row.field`: NULL if the row is."""
    if term.type.kind != "row":
        raise Refused(f"{term.type} has no field {name!r}: it is no row")
    alike = [known for known in term.type.names if known == name] or [
        known for known in term.type.names if known.lower() == name.lower()
    ]
    if len(alike) != 1:
        raise Refused(f"the row has no field {name!r}; its fields are {', '.join(term.type.names)}")
    dtype = term.type.parts[term.type.names.index(alike[0])]
    return Term(dtype, f"struct_extract({term.sql}, {text_of(alike[0])})")


def element(term: Term, index: Term) -> Term:
    """`array[1]` is the first item, and NULL beyond the last; `map[key]` the value of a key, and NULL without one."""
    if term.type.kind == "array":
        if not index.type.is_integer:
            raise Refused(f"the index of an array is an integer; got {index.type}")
        if isinstance(index.literal, int) and index.literal < 1:
            raise Refused(f"the index of an array starts at 1; got {index.literal}")
        if index.is_literal:
            return Term(term.type.item, f"list_extract({term.sql}, {index.sql})")
        return Term(term.type.item, f"CASE WHEN {index.sql} > 0 THEN list_extract({term.sql}, {index.sql}) END")
    if term.type.kind == "map":
        if common_type([term.type.parts[0], index.type]) != term.type.parts[0]:
            raise Refused(f"the keys of the map are {term.type.parts[0]}; got {index.type}")
        key = converted(index, term.type.parts[0])
        return Term(term.type.item, f"map_extract_value({term.sql}, {key.sql})")
    raise Refused(f"{term.type} has no items: it is no array and no map")
