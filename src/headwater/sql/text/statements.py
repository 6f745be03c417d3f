"""What statements say, as it was read: names and trees, nothing of which is bound yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from headwater.sql.text.places import Place


@dataclass(frozen=True)
class Statement:
    """One statement, and where it stands."""

    place: Place


@dataclass(frozen=True)
class ColumnText:
    """A column of CREATE TABLE: of a type, or computed."""

    name: str
    type: exp.DataType | None = None
    computed: exp.Expr | None = None
    computed_text: str = ""
    """What it is computed by, as it was written."""
    place: Place | None = None
    is_nullable: bool = True
    metadata: str | None = None
    """The key that its value comes from, where it is METADATA."""
    is_virtual: bool = False
    """Whether it is read and never written."""


@dataclass(frozen=True)
class WatermarkText:
    """`WATERMARK FOR column AS expression`."""

    column: exp.Expr
    expression: exp.Expr
    text: str
    """The expression as it was written."""


@dataclass(frozen=True)
class CreateTable(Statement):
    """`CREATE TABLE`, with columns or LIKE another one."""

    name: str
    columns: tuple[ColumnText, ...] = ()
    watermark: WatermarkText | None = None
    primary_key: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    option_places: Mapping[str, Place] = field(default_factory=dict)
    partitioned_by: tuple[str, ...] = ()
    like: str | None = None
    like_leaves_out: frozenset[str] = frozenset()
    """What of the other table is not taken over: OPTIONS, WATERMARKS, CONSTRAINTS, GENERATED, METADATA."""
    is_if_not_exists: bool = False


@dataclass(frozen=True)
class CreateView(Statement):
    """`CREATE VIEW name [(columns)] AS query`."""

    name: str
    query: exp.Query
    columns: tuple[str, ...] = ()
    is_if_not_exists: bool = False
    text: str = ""
    """The query as it was written."""


@dataclass(frozen=True)
class Drop(Statement):
    """`DROP TABLE` or `DROP VIEW`."""

    kind: str
    name: str
    is_if_exists: bool = False


@dataclass(frozen=True)
class Show(Statement):
    """`SHOW TABLES`, `SHOW VIEWS`, `SHOW FUNCTIONS`, `SHOW CREATE TABLE name`."""

    what: str
    name: str = ""


@dataclass(frozen=True)
class Describe(Statement):
    """`DESCRIBE name`."""

    name: str


@dataclass(frozen=True)
class Insert(Statement):
    """`INSERT INTO name [(columns)] query`."""

    table: exp.Expr
    name: str
    query: exp.Query
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class SetOption(Statement):
    """`SET 'key' = 'value'`; without a key it shows all."""

    key: str = ""
    value: str = ""
    key_place: Place | None = None


@dataclass(frozen=True)
class Reset(Statement):
    """`RESET 'key'`, or all of them."""

    key: str = ""


@dataclass(frozen=True)
class Query(Statement):
    """`SELECT …`, or what else gives rows."""

    tree: exp.Query


@dataclass(frozen=True)
class Explain(Statement):
    """`EXPLAIN [STATE | CHANGELOG_MODE] statement`, or `EXPLAIN ANALYZE` of the job that runs."""

    detail: str
    statements: tuple[Query | Insert, ...]


@dataclass(frozen=True)
class StatementSet(Statement):
    """`EXECUTE STATEMENT SET BEGIN …; …; END`: inserts that are one job."""

    inserts: tuple[Insert, ...]


@dataclass(frozen=True)
class SetMark(Statement):
    """`EXECUTE STATEMENT SET BEGIN` or `END`, around the statements of a set."""

    is_begin: bool
    explained: str | None = None
    """The detail of EXPLAIN, where the set is explained and not run."""
