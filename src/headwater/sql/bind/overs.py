"""OVER: ROW_NUMBER for Top-N and deduplication, and aggregates over the rows before each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from headwater.data.functions.terms import Term
from headwater.data.functions.types import BIGINT
from headwater.graph.nodes.over import Lag, Numbering
from headwater.sql.bind.grouping import Calls
from headwater.sql.bind.scalars import bound_tree, converted_to, rewritten
from headwater.sql.errors import SqlError
from headwater.sql.relations import (
    Numbered,
    Order,
    Over,
    Project,
    Relation,
    Scalar,
    Values,
    by_time,
    column_tree,
    named_after,
    of_term,
    passed_on,
    unused,
)

if TYPE_CHECKING:
    from headwater.sql.bind.queries import QueryBinder

Items = list[tuple[str, exp.Expr]]
_NUMBERINGS = ("ROW_NUMBER", "RANK", "DENSE_RANK")


def with_overs(binder: QueryBinder, relation: Relation, items: Items, tree: exp.Select) -> tuple[Relation, Items]:
    """A relation with the columns that calls with OVER give, and items that name those."""
    windows = {window.name: window for window in tree.args.get("windows") or ()}
    found = [node for _, item in items for node in item.find_all(exp.Window)]
    if not found:
        return relation, items
    calls = [_Over(binder, node, windows) for node in found]
    if any(call != calls[0] for call in calls[1:]):
        raise SqlError.not_supported(
            binder.place(found[1]),
            "different OVER windows in one SELECT",
            "compute them one after the other in subqueries",
        )
    if all(call.name == "ROW_NUMBER" for call in calls):
        return _numbered(binder, relation, items, calls)
    return _aggregated(binder, relation, items, calls)


def _numbered(binder: QueryBinder, relation: Relation, items: Items, calls: list[_Over]) -> tuple[Relation, Items]:
    first = calls[0]
    relation, partition = _computed(binder, relation, first.partition)
    relation, ordered = _computed(binder, relation, [one.this for one in first.order])
    order = tuple(
        Order(column, bool(one.args.get("desc")), bool(one.args.get("nulls_first")))
        for column, one in zip(ordered, first.order, strict=True)
    )
    number = unused("row_number", relation.names)
    made = Numbered(relation, tuple(partition), order, number)

    def change(node: exp.Expr) -> exp.Expr | None:
        return column_tree(number) if isinstance(node, exp.Window) else None

    return made, [(name, rewritten(item, change)) for name, item in items]


def _aggregated(binder: QueryBinder, relation: Relation, items: Items, calls: list[_Over]) -> tuple[Relation, Items]:
    first = calls[0]
    place = binder.place(first.tree)
    relation, partition = _computed(binder, relation, first.partition)
    if relation.updates:
        raise SqlError.needs_append_only(place, "OVER", relation.updater.label)
    if len(first.order) != 1 or not isinstance(first.order[0].this, exp.Column):
        raise SqlError.wrong_expression(place, "OVER needs ORDER BY a time attribute", "add ORDER BY with one")
    time = first.order[0].this.name
    known = relation.by_name[time]
    if known.time is None and not known.lost:
        raise SqlError.not_supported(
            place,
            "OVER ordered by anything but a time attribute",
            "order by the column that the table's WATERMARK is declared for, or by one that is PROCTIME()",
        )
    if known.time is None:
        raise SqlError.no_time(place, time, known.lost)
    if first.order[0].args.get("desc"):
        raise SqlError.not_supported(place, "OVER in descending order of time", "leave DESC out")
    relation = by_time(relation, time)
    frame, preceding = first.frame()
    made = Calls(binder, relation, list(relation.names))
    results: dict[str, Term] = {}

    def change(node: exp.Expr) -> exp.Expr | None:
        if not isinstance(node, exp.Window):
            return None
        name = unused(f"over{len(results)}", relation.names)
        results[name] = _result(binder, made, node.this)
        return column_tree(name)

    items = [(name, rewritten(item, change)) for name, item in items]
    extra = tuple((name, scalar) for name, scalar in made.inputs.items() if scalar.column is None)
    source = Project(relation, (*passed_on(relation, relation.names), *extra)) if extra else relation
    over = Over(source, tuple(partition), time, known.time, frame, preceding, tuple(made.kernels.values()))
    finished = tuple((name, of_term(over, term)) for name, term in results.items())
    return Project(over, (*passed_on(over, relation.names), *finished)), items


def _result(binder: QueryBinder, calls: Calls, tree: exp.Expr) -> Term:
    """What a function gives: a place among rows, a value of a row before, or an aggregate."""
    name = str(tree.this).upper() if isinstance(tree, exp.Anonymous) else ""
    if name in _NUMBERINGS:
        return calls.other(name.lower(), Numbering(name.lower()), BIGINT)
    if name != "LAG":
        return calls.result(tree)
    given = list(tree.expressions)
    if not 1 <= len(given) <= 3 or not all(_integer(one) is not None for one in given[1:2]):
        raise SqlError.wrong_expression(
            binder.place(tree), "LAG takes a value, a number of rows and a default", "write LAG(x) or LAG(x, 2, y)"
        )
    value = bound_tree(given[0], calls.relation, binder.text)
    column = calls.column(value)
    default = None
    if len(given) == 3:
        other = bound_tree(given[2], calls.relation, binder.text)
        default = calls.column(converted_to(other, value.term.type, binder.place(given[2]), "the default of LAG"))
    offset = _integer(given[1]) if len(given) > 1 else 1
    assert offset is not None
    return calls.other(f"lag_{column}_{offset}", Lag(column, offset, default), value.term.type)


def _integer(tree: exp.Expr) -> int | None:
    return int(tree.name) if isinstance(tree, exp.Literal) and not tree.is_string and tree.name.isdecimal() else None


def _computed(binder: QueryBinder, relation: Relation, trees: list[exp.Expr]) -> tuple[Relation, list[str]]:
    """The columns that expressions are; those that are none are computed first."""
    names: list[str] = []
    more: list[tuple[str, Scalar]] = []
    for tree in trees:
        scalar = bound_tree(tree, relation, binder.text)
        name = named_after(scalar, [*relation.names, *names])
        if scalar.column is None:
            more.append((name, scalar))
        names.append(name)
    if more:
        relation = Project(relation, (*passed_on(relation, relation.names), *more))
    return relation, names


class _Over:
    """One call with OVER: what it calls, and over which rows."""

    def __init__(self, binder: QueryBinder, tree: exp.Window, windows: dict[str, exp.Expr]) -> None:
        self.tree, self._binder = tree, binder
        said: exp.Expr = tree
        if tree.args.get("alias") is not None:
            name = tree.args["alias"].name
            if name not in windows:
                raise SqlError.wrong_expression(binder.place(tree), f"there is no WINDOW {name}", "declare it")
            said = windows[name]
        self.partition: list[exp.Expr] = list(said.args.get("partition_by") or ())
        order = said.args.get("order")
        self.order: list[exp.Expr] = list(order.expressions) if order is not None else []
        self._spec = said.args.get("spec")
        call = tree.this.this if isinstance(tree.this, exp.Filter) else tree.this
        self.name = str(call.this).upper() if isinstance(call, exp.Anonymous) else call.sql()
        if self.name in ("LEAD", "NTILE", "PERCENT_RANK", "CUME_DIST", "NTH_VALUE"):
            raise SqlError.not_supported(
                binder.place(tree), f"{self.name} with OVER", "it depends on rows that are still to come"
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Over):
            return NotImplemented
        return (self.partition, self.order, self._spec) == (other.partition, other.order, other._spec)

    def __hash__(self) -> int:
        return hash(self.name)

    def frame(self) -> tuple[str, int | None]:
        """ROWS or RANGE, and how many rows or milliseconds before the current row; None for all."""
        if self._spec is None:
            return "RANGE", None
        place = self._binder.place(self.tree)
        kind, start = str(self._spec.args.get("kind") or "RANGE").upper(), self._spec.args.get("start")
        end = self._spec.args.get("end")
        if end not in (None, "CURRENT ROW") or str(self._spec.args.get("start_side") or "PRECEDING") != "PRECEDING":
            raise SqlError.not_supported(place, "a frame that does not end at CURRENT ROW", "end it there")
        if start == "UNBOUNDED":
            return kind, None
        if start == "CURRENT ROW":
            return kind, 0
        if kind == "ROWS":
            if not isinstance(start, exp.Literal) or not start.name.isdecimal():
                raise SqlError.wrong_expression(
                    place, "ROWS needs a number of rows", "write ROWS BETWEEN 2 PRECEDING …"
                )
            return kind, int(start.name)
        scalar = bound_tree(start, Values((), ()), self._binder.text)
        value = scalar.term.literal
        if scalar.term.type.kind != "interval day" or not isinstance(value, int):
            raise SqlError.wrong_expression(
                place, "RANGE needs an interval", "write RANGE BETWEEN INTERVAL '1' HOUR PRECEDING …"
            )
        return kind, value // 1000
