"""Which names a part of a query can use, and which columns they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from headwater.data.expressions.binding import UNITS
from headwater.data.functions import CHANGING
from headwater.sql.errors import SqlError
from headwater.sql.relations import Relation, column_tree
from headwater.sql.text.places import Place


@dataclass(frozen=True)
class Visible:
    """A column that can be named: by the name of its table and its own, or by its own alone."""

    table: str | None
    name: str
    column: str
    """What the relation calls it."""
    is_shown: bool = True
    """Whether `*` stands for it too."""
    is_plain: bool = True
    """Whether its own name alone stands for it."""


@dataclass(frozen=True)
class Scope:
    """A relation and what can be named of it."""

    relation: Relation
    visible: tuple[Visible, ...]
    text: str
    outer: Scope | None = None
    """What is around a subquery."""

    @classmethod
    def of(cls, relation: Relation, table: str | None, text: str, columns: Sequence[str] = ()) -> Scope:
        """Of one table, whose columns may be called otherwise."""
        names = list(columns) or relation.names
        return cls(
            relation,
            tuple(Visible(table, name, column) for name, column in zip(names, relation.names, strict=True)),
            text,
        )

    def over(self, relation: Relation) -> Scope:
        """The same names over a relation that has these columns too."""
        return replace(self, relation=relation)

    def place(self, tree: exp.Expr) -> Place | None:
        return Place.of(self.text, tree)

    def resolved(self, tree: exp.Expr) -> exp.Expr:
        """A copy of a tree that names columns as the relation does, and functions in capital letters."""
        return tree.copy().transform(self._resolved_node, copy=False)

    def _resolved_node(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            return self.column(node)
        if isinstance(node, exp.Bracket) and self._is_map(node.this):
            return exp.Anonymous(this="MAP", expressions=node.expressions)
        if isinstance(node, exp.Anonymous) and isinstance(node.this, str):
            node.set("this", node.this.upper())
            if node.this in UNITS and node.expressions:  # a word such as DAY is no column
                node.set("expressions", [exp.Var(this=node.expressions[0].name), *node.expressions[1:]])
        return node

    def _is_map(self, tree: exp.Expr) -> bool:
        """Whether a word before brackets says that they hold a map."""
        return isinstance(tree, exp.Column) and tree.sql().upper() == "MAP" and not self.knows(tree)

    def column(self, tree: exp.Column) -> exp.Expr:
        """The column that a name stands for, with the fields of it that are named."""
        parts = list(tree.parts)
        found, rest = self._found(parts, tree)
        if found is None:
            return self._unknown(tree)
        made: exp.Expr = column_tree(found.column)
        made.this.meta.update(_meta(parts))
        for field in rest:
            made = exp.Dot(this=made, expression=field)
        return made

    def _found(self, parts: list[exp.Expr], tree: exp.Expr) -> tuple[Visible | None, list[exp.Expr]]:
        if len(parts) > 1:
            of_table = [v for v in self.visible if v.table == parts[0].name and v.name == parts[1].name]
            if of_table:
                return of_table[0], parts[2:]
        alike = [v for v in self.visible if v.name == parts[0].name and v.is_plain]
        if len({v.column for v in alike}) > 1:
            raise SqlError.ambiguous(self.place(tree), parts[0].name, [str(v.table) for v in alike])
        return (alike[0] if alike else None), parts[1:]

    def _unknown(self, tree: exp.Column) -> exp.Expr:
        parts = tree.parts
        tables = {v.table for v in self.visible if v.table}
        if len(parts) == 1 and not parts[0].args.get("quoted") and parts[0].name.upper() in CHANGING:
            call = exp.Anonymous(this=parts[0].name.upper(), expressions=[])
            call.meta.update(_meta(list(parts)))
            return call
        if len(parts) > 1 and parts[0].name in tables:
            known = [v.name for v in self.visible if v.table == parts[0].name]
            raise SqlError.no_column(self.place(tree), parts[1].name, known)
        if len(parts) > 1:
            raise SqlError.no_table(self.place(tree), parts[0].name, sorted(tables))
        raise SqlError.no_column(self.place(tree), parts[0].name, [v.name for v in self.visible])

    def knows(self, tree: exp.Column) -> bool:
        """Whether a name stands for something here."""
        return self._found(list(tree.parts), tree)[0] is not None

    def starred(self, star: exp.Expr) -> list[Visible]:
        """The columns that `*` or `t.*` stands for."""
        table = star.args.get("table") if isinstance(star, exp.Column) else None
        found = [v for v in self.visible if (v.is_shown if table is None else v.table == table.name)]
        if table is not None and not found:
            raise SqlError.no_table(self.place(table), table.name, sorted({v.table for v in self.visible if v.table}))
        return found


def _meta(parts: list[exp.Expr]) -> dict[str, object]:
    """The place of several words, as one."""
    known = [part.meta for part in parts if "start" in part.meta]
    return {**known[0], "end": known[-1]["end"]} if known else {}
