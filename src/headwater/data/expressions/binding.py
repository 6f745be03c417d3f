"""From a tree to DuckDB's text: names against the schema, calls against the table of functions.

Every node of a tree is either one of the shapes here or refused. What a shape means is in the table: nothing reaches
DuckDB that is not a column, a literal or a form of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sqlglot import exp

from headwater.data.expressions.errors import ExpressionError
from headwater.data.expressions.literals import binary, date_literal, interval_literal, number, text, timestamp_literal
from headwater.data.expressions.written_types import WrittenType, written_type
from headwater.data.functions import AGGREGATES, CHANGING, function_named, nearest
from headwater.data.functions.casts import cast
from headwater.data.functions.conditions import case
from headwater.data.functions.parts import element, field_of
from headwater.data.functions.refusals import Refused
from headwater.data.functions.terms import Term
from headwater.data.functions.types import BOOLEAN, NULL, Type, quoted, type_of
from headwater.data.schema import Schema
from headwater.errors import SchemaError

MOST_DEEP: Final = 200
"""Operators inside of operators; long chains of AND and OR are one."""
MOST_TEXT: Final = 400_000
"""Characters of DuckDB's text for one expression: forms that name an argument several times grow when they are nested."""

_BINARY: Final[dict[type[exp.Expr], str]] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.DPipe: "||",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
}
_UNARY: Final[dict[type[exp.Expr], str]] = {exp.Neg: "NEGATE", exp.Not: "NOT"}
UNITS: Final = {"TIMESTAMPADD", "TIMESTAMPDIFF"}
"""Functions whose first argument is a word such as DAY."""


class Binder:
    """Binds the expressions of one step."""

    def __init__(self, types: Mapping[str, Type], step: str) -> None:
        """`types` are those of the columns."""
        self._types = dict(types)
        self._step, self._text = step, ""

    @classmethod
    def of(cls, schema: Schema, step: str) -> Binder:
        """Over the columns of a schema."""
        return cls({field.name: type_of(field.type) for field in schema.arrow}, step)

    def bind(self, tree: exp.Expr, text: str) -> Term:
        """The bound expression; an error names the step, and what in the text is wrong."""
        self._text = text
        if _depth(tree) > MOST_DEEP:
            raise ExpressionError.too_deep(self._step, text, MOST_DEEP)
        try:
            term = self._term(tree)
        except Refused as why:
            raise ExpressionError.bad_expression(self._step, text, str(why)) from None
        if len(term.sql) > MOST_TEXT:
            raise ExpressionError.too_long(self._step, len(term.sql), MOST_TEXT)
        return term

    def column(self, name: str) -> str:
        """The name of a column as the schema has it: names that differ in case only are told apart, if they must be."""
        if name in self._types:
            return name
        alike = [known for known in self._types if known.lower() == name.lower()]
        if len(alike) != 1:
            raise SchemaError.no_field(name, list(self._types), self._step)
        return alike[0]

    def _term(self, tree: exp.Expr) -> Term:
        if type(tree) in _BINARY:
            return self._chain(tree)
        if type(tree) in _UNARY:
            return self._unary(tree)
        shape = _SHAPES.get(type(tree))
        if shape is None:
            raise self._unknown(tree)
        return shape(self, tree)

    def _unknown(self, tree: exp.Expr) -> ExpressionError:
        return ExpressionError.not_an_expression(self._step, self._text, tree.sql()[:80])

    def _call(self, name: str, terms: Sequence[Term]) -> Term:
        found = function_named(name)
        if found is None:
            raise self._no_function(name)
        for form in found.forms:
            if (made := form.fit(terms)) is not None:
                return made
        given = ", ".join(f"literal {term.type}" if term.is_literal else str(term.type) for term in terms)
        if not terms and name in CHANGING:
            raise ExpressionError.changing_function(self._step, self._text, name)
        takes = " or ".join(form.signature for form in found.forms)
        raise ExpressionError.wrong_arguments(self._step, self._text, name, given, takes)

    def _no_function(self, name: str) -> ExpressionError:
        if name in CHANGING:
            return ExpressionError.changing_function(self._step, self._text, name)
        if name in AGGREGATES:
            return ExpressionError.not_one_expression(self._step, self._text)
        return ExpressionError.no_function(self._step, self._text, name, nearest(name))

    # -- shapes -----------------------------------------------------------------------------------------------------

    def _chain(self, tree: exp.Expr) -> Term:
        """Operators that stand in a row, from the left, without a call for each."""
        rest: list[tuple[str, exp.Expr]] = []
        while type(tree) in _BINARY:
            rest.append((_BINARY[type(tree)], tree.args["expression"]))
            tree = tree.this
        term = self._term(tree)
        for name, right in reversed(rest):
            term = self._call(name, [term, self._term(right)])
        return term

    def _unary(self, tree: exp.Expr) -> Term:
        if isinstance(tree, exp.Neg) and isinstance(tree.this, exp.Literal) and not tree.this.is_string:
            return number("-" + tree.this.name)
        if isinstance(tree, exp.Not) and isinstance(tree.this, exp.Is):
            return self._is(tree.this, "NOT ")
        return self._call(_UNARY[type(tree)], [self._term(tree.this)])

    def _connected(self, tree: exp.Expr) -> Term:
        """AND and OR: a chain of either is one call."""
        parts, waiting = [], [tree]
        while waiting:
            part = waiting.pop()
            if type(part) is type(tree):
                waiting += [part.args["expression"], part.this]
            else:
                parts.append(self._term(part))
        return self._call("AND" if isinstance(tree, exp.And) else "OR", parts)

    def _column(self, tree: exp.Expr) -> Term:
        assert isinstance(tree, exp.Column)
        first, *fields = tree.parts
        if isinstance(first, exp.Star) or any(isinstance(field, exp.Star) for field in fields):
            raise self._unknown(tree)
        is_call = not fields and not first.args.get("quoted") and first.name.upper() in CHANGING
        if is_call and first.name.lower() not in {name.lower() for name in self._types}:
            raise ExpressionError.changing_function(self._step, self._text, first.name.upper())
        name = self.column(first.name)
        term = Term(self._types[name], quoted(name))
        for field in fields:
            term = field_of(term, field.name)
        return term

    def _dot(self, tree: exp.Expr) -> Term:
        if not isinstance(tree.args["expression"], exp.Identifier):
            raise ExpressionError.no_function(self._step, self._text, tree.sql(), [])
        return field_of(self._term(tree.this), tree.args["expression"].name)

    def _bracket(self, tree: exp.Expr) -> Term:
        of, inside = tree.this, tree.expressions
        if isinstance(of, exp.Column) and of.name.upper() == "MAP" and "map" not in self._types:
            return self._call("MAP", [self._term(part) for part in inside])
        if len(inside) != 1 or isinstance(inside[0], exp.Slice):
            raise self._unknown(tree)
        return element(self._term(of), self._term(inside[0]))

    def _anonymous(self, tree: exp.Expr) -> Term:
        name = str(tree.this).upper()
        if name.endswith(" LITERAL"):
            made = {"TIMESTAMP": timestamp_literal, "DATE": date_literal}.get(name.removesuffix(" LITERAL"))
            if made is None:
                raise self._unknown(tree)
            return made(tree.expressions[0].name)
        if function_named(name) is None:
            raise self._no_function(name)
        given = list(tree.expressions)
        terms = []
        if name in UNITS and given:
            terms.append(text(given.pop(0).name.upper()))
        terms += [self._clause(part) if isinstance(part, exp.Property) else self._term(part) for part in given]
        return self._call(name, terms)

    def _clause(self, clause: exp.Property) -> Term:
        """A clause such as NULL ON EMPTY, as the text of its words: its value is a literal or a type."""
        word, value = clause.this.name, clause.args["value"]
        if isinstance(value, exp.DataType):
            return text(f"{word} {self._written(value).type}")
        if isinstance(value, exp.Var):
            return text(f"{word} {value.name}")
        term = self._term(value)
        if not term.is_literal:
            raise Refused(f"DEFAULT {word} takes a literal")
        return Term(term.type, term.sql, f"{word} DEFAULT", is_literal=True)

    def _written(self, tree: exp.Expr) -> WrittenType:
        assert isinstance(tree, exp.DataType)
        return written_type(tree)

    def _cast(self, tree: exp.Expr) -> Term:
        term, to = self._term(tree.this), self._written(tree.args["to"])
        made = cast(term, to.type, to.length, is_padded=to.is_padded, is_trying=isinstance(tree, exp.TryCast))
        if made is None:
            raise Refused(f"there is no cast from {term.type} to {to.type}")
        return made

    def _case(self, tree: exp.Expr) -> Term:
        subject, default = tree.args.get("this"), tree.args.get("default")
        conditions, values = [], []
        for branch in tree.args["ifs"]:
            condition = self._term(branch.this)
            if subject is not None:
                condition = self._call("=", [self._term(subject), condition])
            conditions.append(condition)
            values.append(self._term(branch.args["true"]))
        values.append(Term(NULL, "NULL") if default is None else self._term(default))
        return case(conditions, values)

    def _is(self, tree: exp.Expr, negated: str = "") -> Term:
        what = tree.args["expression"]
        if isinstance(what, exp.Null):
            word = "NULL"
        elif isinstance(what, exp.Boolean):
            word = "TRUE" if what.this else "FALSE"
        elif isinstance(what, exp.JSON) and not what.args.get("unique"):
            word = f"JSON {what.this}" if what.this else "JSON"
        else:
            raise self._unknown(tree)
        return self._call(f"IS {negated}{word}", [self._term(tree.this)])

    def _in(self, tree: exp.Expr) -> Term:
        if not tree.expressions:
            raise ExpressionError.not_one_expression(self._step, self._text)
        return self._call("IN", [self._term(part) for part in (tree.this, *tree.expressions)])

    def _between(self, tree: exp.Expr) -> Term:
        name = "BETWEEN SYMMETRIC" if tree.args.get("symmetric") else "BETWEEN"
        return self._call(name, [self._term(part) for part in (tree.this, tree.args["low"], tree.args["high"])])

    def _like(self, tree: exp.Expr) -> Term:
        escape = None
        if isinstance(tree, exp.Escape):
            tree, escape = tree.this, tree.args["expression"]
        if not isinstance(tree, exp.Like | exp.SimilarTo):
            raise self._unknown(tree)
        name = "LIKE" if isinstance(tree, exp.Like) else "SIMILAR TO"
        parts = [tree.this, tree.args["expression"], *([] if escape is None else [escape])]
        made = self._call(name, [self._term(part) for part in parts])
        return self._call("NOT", [made]) if tree.args.get("negate") else made

    def _interval(self, tree: exp.Expr) -> Term:
        value, unit = tree.this, tree.args.get("unit")
        if not isinstance(value, exp.Literal) or unit is None:
            raise self._unknown(tree)
        if isinstance(unit, exp.IntervalSpan):
            return interval_literal(value.name, unit.this.name.upper(), unit.args["expression"].name.upper())
        return interval_literal(value.name, unit.name.upper(), None)

    def _with_words(self, name: str, *parts: exp.Expr | None, unit: str | None = None) -> Term:
        terms = [self._term(part) for part in parts if part is not None]
        return self._call(name, [*([] if unit is None else [text(unit)]), *terms])

    def _rounded(self, tree: exp.Expr) -> Term:
        name = "FLOOR" if isinstance(tree, exp.Floor) else "CEIL"
        unit = tree.args.get("to")
        if unit is not None:
            return self._call(f"{name} TO", [self._term(tree.this), text(unit.name.upper())])
        return self._with_words(name, tree.this, tree.args.get("decimals"))

    def _trim(self, tree: exp.Expr) -> Term:
        where = tree.args.get("position") or "BOTH"
        return self._with_words(f"TRIM {where}" if where != "BOTH" else "TRIM", tree.this, tree.args.get("expression"))


def _depth(tree: exp.Expr) -> int:
    """How deep operators and calls are inside of each other, counted without a call for each level."""
    deepest, waiting = 0, [(tree, 1)]
    while waiting:
        node, depth = waiting.pop()
        deepest = max(deepest, depth)
        for child in node.iter_expressions():
            is_chain = isinstance(node, exp.And | exp.Or) and type(child) is type(node)
            waiting.append((child, depth if is_chain else depth + 1))
    return deepest


_SHAPES: Final[dict[type[exp.Expr], Callable[[Binder, exp.Expr], Term]]] = {
    exp.Paren: lambda b, t: b._term(t.this),
    exp.Literal: lambda _, t: text(t.name) if t.is_string else number(t.name),
    exp.Boolean: lambda _, t: Term(BOOLEAN, "true" if t.this else "false", bool(t.this), is_literal=True),
    exp.Null: lambda *_: Term(NULL, "NULL", None, is_literal=True),
    exp.HexString: lambda _, t: binary(t.name),
    exp.And: Binder._connected,
    exp.Or: Binder._connected,
    exp.Column: Binder._column,
    exp.Dot: Binder._dot,
    exp.Bracket: Binder._bracket,
    exp.Array: lambda b, t: b._with_words("ARRAY", *t.expressions),
    exp.Anonymous: lambda b, t: b._anonymous(t),
    exp.Cast: Binder._cast,
    exp.TryCast: Binder._cast,
    exp.Case: Binder._case,
    exp.Is: Binder._is,
    exp.In: Binder._in,
    exp.Between: Binder._between,
    exp.Like: Binder._like,
    exp.Escape: Binder._like,
    exp.SimilarTo: Binder._like,
    exp.Interval: Binder._interval,
    exp.Extract: lambda b, t: b._with_words("EXTRACT", t.args["expression"], unit=t.this.name.upper()),
    exp.Floor: Binder._rounded,
    exp.Ceil: Binder._rounded,
    exp.Trim: Binder._trim,
    exp.StrPosition: lambda b, t: b._with_words("POSITION", t.args["substr"], t.this),
    exp.Substring: lambda b, t: b._with_words("SUBSTRING", t.this, t.args.get("start"), t.args.get("length")),
    exp.Overlay: lambda b, t: b._with_words(
        "OVERLAY", t.this, t.args["expression"], t.args["from_"], t.args.get("for_")
    ),
}
