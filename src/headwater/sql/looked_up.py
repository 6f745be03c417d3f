"""What rows can be looked up in by key, while a query runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from headwater.graph.nodes.lookup import Cache
from headwater.lookups import LookupTable


@dataclass(frozen=True)
class LookedUp:
    """The other side of a look-up join, opened when a query needs it."""

    open: Callable[[], LookupTable | pa.Table]
    cache: Cache = None
    """How many keys are kept, or the whole table."""
    ttl: str | None = None
    """For how long."""
    is_fixed: bool = False
    """Whether the answer to a key is always the same."""
