"""Window table functions: TUMBLE, HOP, CUMULATE and SESSION."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from headwater.sql.bind import sources
from headwater.sql.bind.scalars import bound_tree
from headwater.sql.errors import SqlError
from headwater.sql.relations import EVENT, PROCESSING, Relation, Values, Window, WindowTable, by_time

if TYPE_CHECKING:
    from headwater.sql.bind.queries import QueryBinder

_ARGUMENTS: Final = {
    "TUMBLE": ("DATA", "TIMECOL", "SIZE", "OFFSET"),
    "HOP": ("DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("DATA", "TIMECOL", "STEP", "SIZE", "OFFSET"),
    "SESSION": ("DATA", "TIMECOL", "GAP"),
}
_SHOWN: Final = ("window_start", "window_end", "window_time")


def window_table(binder: QueryBinder, call: exp.Anonymous) -> Relation:
    """The rows of a table with their windows."""
    kind = str(call.this).upper()
    if kind not in _ARGUMENTS:
        raise SqlError.not_supported(
            binder.place(call), f"the table function {kind}", f"there are {', '.join(_ARGUMENTS)}"
        )
    given = _arguments(binder, kind, call)
    data = given["DATA"]
    if not isinstance(data, exp.Table | exp.Subquery | exp.Query):
        raise SqlError.wrong_expression(binder.place(call), f"{kind} needs a table", "write TABLE name first")
    relation = sources.table(binder, data).relation
    partition: tuple[str, ...] = ()
    if data.args.get("partition") is not None:
        partition = tuple(_column(binder, relation, column) for column in data.args["partition"].expressions)
        if kind != "SESSION":
            raise SqlError.misplaced(binder.place(data), "PARTITION BY", kind, "group by the columns instead")
    descriptor = given["TIMECOL"]
    if not isinstance(descriptor, exp.Anonymous) or descriptor.this != "DESCRIPTOR" or len(descriptor.expressions) != 1:
        raise SqlError.wrong_expression(binder.place(call), f"{kind} needs a time column", "write DESCRIPTOR(column)")
    sizes = [given[name] for name in _ARGUMENTS[kind][2:] if name in given]
    window = made_window(
        binder, relation, call, kind=kind, time=descriptor.expressions[0], sizes=sizes, partition=partition
    )
    return WindowTable(by_time(relation, window.time), window)


def made_window(
    binder: QueryBinder,
    relation: Relation,
    call: exp.Expr,
    *,
    kind: str,
    time: exp.Expr,
    sizes: list[exp.Expr],
    partition: tuple[str, ...] = (),
) -> Window:
    """The windows of a kind over a time column of a relation."""
    column = _time(binder, relation, time)
    for name in _SHOWN:
        if name in relation.by_name:
            raise SqlError.wrong_expression(
                binder.place(call), f"the table of {kind} has a column {name!r} already", "rename it in a subquery"
            )
    names = _ARGUMENTS[kind][2:]
    lengths = {name: _milliseconds(binder, size, name) for name, size in zip(names, sizes, strict=False)}
    offset = lengths.pop("OFFSET", 0)
    _check_sizes(binder, kind, list(lengths.values()), call)
    domain = relation.by_name[column].time
    assert domain is not None
    if relation.updates and kind == "SESSION":
        raise SqlError.needs_append_only(binder.place(call), "SESSION", relation.updater.label)
    return Window(kind, column, *_SHOWN, tuple(lengths.values()), offset, partition, domain)


def _arguments(binder: QueryBinder, kind: str, call: exp.Anonymous) -> dict[str, exp.Expr]:
    names = _ARGUMENTS[kind]
    given: dict[str, exp.Expr] = {}
    for at, argument in enumerate(call.expressions):
        if isinstance(argument, exp.Kwarg):
            name, value = argument.this.name.upper(), argument.expression
        else:
            name, value = (names[at] if at < len(names) else ""), argument
        if name not in names:
            raise SqlError.wrong_expression(
                binder.place(argument), f"{kind} has no such argument", f"it takes {', '.join(names)}"
            )
        given[name] = value
    for name in names:
        if name not in given and name != "OFFSET":
            raise SqlError.wrong_expression(
                binder.place(call), f"{kind} lacks its {name}", f"it takes {', '.join(names)}"
            )
    return given


def _column(binder: QueryBinder, relation: Relation, tree: exp.Expr) -> str:
    name = tree.name
    if name not in relation.by_name:
        raise SqlError.no_column(binder.place(tree), name, relation.names)
    return name


def _time(binder: QueryBinder, relation: Relation, tree: exp.Expr) -> str:
    name = _column(binder, relation, tree)
    field = relation.by_name[name]
    if field.time not in (EVENT, PROCESSING):
        why = field.lost or "no WATERMARK is declared for it"
        raise SqlError.no_time(binder.place(tree), name, why)
    return name


def _milliseconds(binder: QueryBinder, tree: exp.Expr, what: str) -> int:
    scalar = bound_tree(tree, Values((), ()), binder.text)
    value = scalar.term.literal
    if scalar.term.type.kind != "interval day" or not isinstance(value, int) or isinstance(value, bool):
        raise SqlError.wrong_expression(binder.place(tree), f"{what} is an interval", "write INTERVAL '1' MINUTE")
    if value % 1000:
        raise SqlError.wrong_expression(binder.place(tree), f"{what} must be whole milliseconds", "choose another one")
    return value // 1000


def _check_sizes(binder: QueryBinder, kind: str, sizes: list[int], call: exp.Expr) -> None:
    if any(size <= 0 for size in sizes):
        raise SqlError.wrong_expression(
            binder.place(call), f"the sizes of {kind} must be more than nothing", "enlarge them"
        )
    if kind == "CUMULATE" and sizes[1] % sizes[0]:
        raise SqlError.wrong_expression(
            binder.place(call), "the size of CUMULATE must be a multiple of its step", "change one"
        )
