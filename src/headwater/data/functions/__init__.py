"""The table of functions and operators: all that expressions may use, by family.

Each has a name, signatures, a meaning in a line and a form in DuckDB (`declared.py`). The meaning is that of Flink SQL.
`docs/reference/functions.md` is written from this table.
"""

from __future__ import annotations

import difflib

from headwater.data.functions.arrays import ARRAYS
from headwater.data.functions.conditions import CONDITIONS
from headwater.data.functions.declared import Function
from headwater.data.functions.hashes import HASHES
from headwater.data.functions.json import JSON
from headwater.data.functions.maps import MAPS
from headwater.data.functions.numbers import NUMBERS
from headwater.data.functions.operators import OPERATORS
from headwater.data.functions.regexes import REGEXES
from headwater.data.functions.strings import STRINGS
from headwater.data.functions.times import TIMES

FAMILIES: dict[str, tuple[Function, ...]] = {
    "Operators": OPERATORS,
    "Conditions": CONDITIONS,
    "Numbers": NUMBERS,
    "Strings": STRINGS,
    "Regular expressions": REGEXES,
    "Hashes and encodings": HASHES,
    "Times": TIMES,
    "Arrays": ARRAYS,
    "Maps and rows": MAPS,
    "JSON": JSON,
}
_BY_NAME = {name: function for family in FAMILIES.values() for function in family for name in function.names}

_CHANGING = """
    NOW CURRENT_TIMESTAMP CURRENT_DATE CURRENT_TIME LOCALTIME LOCALTIMESTAMP CURRENT_ROW_TIMESTAMP UNIX_TIMESTAMP RAND
    RAND_INTEGER RANDOM UUID UUIDV4 UUIDV7 GEN_RANDOM_UUID TODAY GETDATE SYSDATE CURRENT_USER CURRENT_DATABASE
    CURRENT_WATERMARK PROCTIME CURDATE CURTIME RANDN MONOTONICALLY_INCREASING_ID
"""
_AGGREGATES = """
    COUNT SUM AVG MIN MAX FIRST LAST FIRST_VALUE LAST_VALUE ANY_VALUE COLLECT LISTAGG ARRAY_AGG STRING_AGG STDDEV
    STDDEV_POP STDDEV_SAMP VAR_POP VAR_SAMP VARIANCE RANK DENSE_RANK ROW_NUMBER LEAD LAG NTILE MEDIAN
    APPROX_COUNT_DISTINCT JSON_ARRAYAGG JSON_OBJECTAGG BOOL_AND BOOL_OR COLLECT_LIST COLLECT_SET PERCENTILE
"""
CHANGING = frozenset(_CHANGING.split())
"""Names of functions that give another value each time."""
AGGREGATES = frozenset(_AGGREGATES.split())
"""Names of functions over many rows."""


def function_named(name: str) -> Function | None:
    """The function with this name, in upper case."""
    return _BY_NAME.get(name)


def nearest(name: str) -> list[str]:
    """Names in the table that are written nearly like this one."""
    words = [known for known in _BY_NAME if known[0].isalpha() and " " not in known]
    close = difflib.get_close_matches(name.upper(), words, n=3, cutoff=0.6)
    return close or [known for known in words if name.upper() in known or known in name.upper()][:3]
