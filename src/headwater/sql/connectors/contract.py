"""What a connector of SQL is told of a table, and what it makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from headwater.connectors.contract import Sink, Source
from headwater.data.schema import Schema
from headwater.sql.connectors.options import Options
from headwater.sql.errors import SqlError
from headwater.sql.looked_up import LookedUp
from headwater.sql.relations import Field


@dataclass(frozen=True)
class Wanted:
    """A table that is declared: what is stored of it, and its options, which a connector takes one by one."""

    name: str
    fields: tuple[Field, ...]
    schema: Schema
    """Of all columns that are stored."""
    options: Options
    metadata: Mapping[str, str] = field(default_factory=dict)
    """For columns that are METADATA, the key that each comes from."""
    primary_key: tuple[str, ...] = ()
    partitioned_by: tuple[str, ...] = ()

    @property
    def has_time(self) -> bool:
        return any(f.type.is_timestamp for f in self.fields)

    def refuse_metadata(self, known: tuple[str, ...] = ()) -> None:
        """Refuse METADATA columns of a key that the connector does not have."""
        for column, key in self.metadata.items():
            if key not in known:
                raise SqlError.no_metadata(self.options.place, self.name, column, key, known)

    def refuse_partitions(self) -> None:
        if self.partitioned_by:
            raise SqlError.bad_option(
                self.options.place, self.name, "PARTITIONED BY", "is for files alone", "leave it out"
            )

    def refuse_key(self, why: str) -> None:
        if self.primary_key:
            raise SqlError.bad_option(self.options.place, self.name, "PRIMARY KEY", why, "leave it out")

    def require_key(self, why: str) -> None:
        if not self.primary_key:
            raise SqlError.bad_option(
                self.options.place, self.name, "PRIMARY KEY", why, "declare PRIMARY KEY (…) NOT ENFORCED"
            )


@dataclass(frozen=True)
class Made:
    """The ends that a table has."""

    source: Source | None = None
    sink: Sink | None = None
    lookup: LookedUp | None = None
    changes: bool = False
    """Whether rows that are read replace or take back others."""
    tells_kinds: bool = False
    """Whether rows that are read have a last column that says what they do."""


Connect = Callable[[Wanted], Made]
