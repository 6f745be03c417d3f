"""The algebra: what a query computes, as frozen relations. Each knows its columns, its time, its key, and whether it updates.

Columns of a relation have names of their own, by which expressions over it find them.
"""

from __future__ import annotations

from headwater.sql.relations.columns import (
    Filter,
    FunctionCall,
    Functions,
    Project,
    Scan,
    Union,
    Unnest,
    Values,
    View,
    WindowTable,
    only,
)
from headwater.sql.relations.core import (
    EVENT,
    PROCESSING,
    Called,
    Field,
    Order,
    Relation,
    Scalar,
    Window,
    as_text,
    column_tree,
    name_of,
    named_after,
    of_term,
    passed,
    passed_on,
    unused,
    window_fields,
)
from headwater.sql.relations.groups import Aggregate, Distinct, Over, SortByTime
from headwater.sql.relations.joins import IntervalJoin, Join, LookupJoin, RegularJoin, TemporalJoin, WindowJoin
from headwater.sql.relations.ranks import Deduplicate, Numbered, Rank

__all__ = [
    "EVENT",
    "PROCESSING",
    "Aggregate",
    "Called",
    "Deduplicate",
    "Distinct",
    "Field",
    "Filter",
    "FunctionCall",
    "Functions",
    "IntervalJoin",
    "Join",
    "LookupJoin",
    "Numbered",
    "Order",
    "Over",
    "Project",
    "Rank",
    "RegularJoin",
    "Relation",
    "Scalar",
    "Scan",
    "SortByTime",
    "TemporalJoin",
    "Union",
    "Unnest",
    "Values",
    "View",
    "Window",
    "WindowJoin",
    "WindowTable",
    "as_text",
    "column_tree",
    "name_of",
    "named_after",
    "of_term",
    "only",
    "passed",
    "passed_on",
    "unused",
    "window_fields",
]
