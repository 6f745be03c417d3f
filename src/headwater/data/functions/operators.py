"""Operators: arithmetic, comparisons, logic."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headwater.data.functions.casts import in_utc, of_utc
from headwater.data.functions.declared import Form, Function, Gives, function
from headwater.data.functions.patterns import like, similar_to
from headwater.data.functions.terms import Call, Term, let
from headwater.data.functions.types import Type, common_type, fitted_decimal


def _digits(terms: Sequence[Term]) -> tuple[Type, Type]:
    return terms[0].type.digits, terms[1].type.digits


def _sum_type(terms: Sequence[Term]) -> Type:
    left, right = _digits(terms)
    scale = max(left.scale, right.scale)
    return fitted_decimal(max(left.precision - left.scale, right.precision - right.scale) + scale + 1, scale)


def _product_type(terms: Sequence[Term]) -> Type:
    left, right = _digits(terms)
    return fitted_decimal(left.precision + right.precision + 1, left.scale + right.scale)


def _quotient_type(terms: Sequence[Term]) -> Type:
    left, right = _digits(terms)
    scale = max(6, left.scale + right.precision + 1)
    return fitted_decimal(left.precision - left.scale + right.scale + scale, scale)


def _remainder_type(terms: Sequence[Term]) -> Type:
    left, right = _digits(terms)
    scale = max(left.scale, right.scale)
    return fitted_decimal(min(left.precision - left.scale, right.precision - right.scale) + scale, scale)


def _added(sign: str) -> Callable[[Call], str]:
    def made(call: Call) -> str:
        """Both are made as wide as the result, so that nothing overflows on the way."""
        left, right = (f"CAST({t.sql} AS DECIMAL({call.type.precision},{t.type.digits.scale}))" for t in call.terms)
        return f"TRY_CAST({left} {sign} {right} AS {call.type.duckdb})"

    return made


def _multiplied(call: Call) -> str:
    """DuckDB multiplies two small decimals in 64 bits: the left one is made wide if the product needs it."""
    left, right = (t.type.digits for t in call.terms)
    width = max(left.precision, 19) if left.precision + right.precision > 18 else left.precision
    product = f"(CAST({call[0]} AS DECIMAL({width},{left.scale})) * CAST({call[1]} AS {right.duckdb}))"
    return f"TRY_CAST({product} AS {call.type.duckdb})"


def _divided(call: Call) -> str:
    """Exact, by whole numbers of 128 bits: DuckDB's own division of decimals gives a double."""
    left, right = (t.type.digits for t in call.terms)
    above = _whole(call[0], left, call.type.scale - left.scale + right.scale)
    below = _whole(call[1], right, 0)
    rounded = (
        "__q.n // __q.d + (CASE WHEN abs(__q.n % __q.d) >= abs(__q.d) - abs(__q.n % __q.d) "
        "THEN (CASE WHEN (__q.n < 0) = (__q.d < 0) THEN 1 ELSE -1 END) ELSE 0 END)"
    )
    return _scaled(let("__q", f"{{'n': {above}, 'd': {below}}}", rounded), call.type)


def _whole(sql: str, dtype: Type, places: int) -> str:
    """The digits of a decimal as a whole number, with so many zeros behind it."""
    ten = f"CAST({10**dtype.scale} AS DECIMAL({dtype.scale + 1},0))"
    whole = (
        f"CAST(CAST({sql} AS DECIMAL({min(38, dtype.precision + dtype.scale + 1)},{dtype.scale})) * {ten} AS HUGEINT)"
    )
    return whole if places == 0 else f"({whole} * CAST({10**places} AS HUGEINT))"


def _scaled(sql: str, result: Type) -> str:
    """The decimal that has these digits."""
    unit = f"CAST('{10**-result.scale:.{result.scale}f}' AS DECIMAL({max(result.scale, 1)},{result.scale}))"
    return f"TRY_CAST(CAST({sql} AS DECIMAL(38,0)) * {unit} AS {result.duckdb})"


def _remainder(call: Call) -> str:
    wide = common_type([t.type.digits for t in call.terms])
    assert wide is not None
    left, right = (f"CAST({t.sql} AS {wide.duckdb})" for t in call.terms)
    return f"CAST({left} % {right} AS {call.type.duckdb})"


def _decimals(duckdb: Callable[[Call], str], gives: Gives) -> tuple[Form, ...]:
    """The forms of an operator with a decimal on either side."""
    return tuple(Form(f"({pair}) -> decimal", duckdb, gives) for pair in ("decimal, exact", "exact, decimal"))


def _days(interval: Term) -> int:
    """The whole days of an interval, towards zero: a date has no other part that could move."""
    assert isinstance(interval.literal, int)
    return int(interval.literal / 86_400_000_000)


def _moved(sign: str) -> tuple[Form, ...]:
    """Times moved by an interval."""
    return (
        Form("(date, interval day) -> date", lambda call: f"({call[0]} {sign} {_days(call.terms[1])})"),
        Form("(date, interval month) -> date", f"CAST({{0}} {sign} {{1}} AS DATE)"),
        Form(
            "(timestamps, interval) -> timestamp",
            lambda call: of_utc(f"({in_utc(call[0], call.type)} {sign} {call[1]})", call.type),
            lambda terms: terms[0].type,
        ),
    )


def _numbers(sign: str) -> Form:
    return Form("(N, N) -> N", f"({{0}} {sign} {{1}})")


def _comparison(name: str, meaning: str, takes: str = "O, O") -> Function:
    return Function(name, (Form(f"({takes}) -> boolean", f"({{0}} {name} {{1}})"),), meaning, written=f"a {name} b")


def _test(name: str, takes: str, duckdb: str, meaning: str) -> Function:
    return Function(name, (Form(f"({takes}) -> boolean", duckdb),), meaning, written=f"a {name}")


OPERATORS = (
    Function(
        "+",
        (
            *_decimals(_added("+"), _sum_type),
            *_moved("+"),
            Form(
                "(interval, timestamps) -> timestamp",
                lambda call: of_utc(f"({in_utc(call[1], call.type)} + {call[0]})", call.type),
                lambda terms: terms[1].type,
            ),
            Form("(interval day, date) -> date", lambda call: f"({call[1]} + {_days(call.terms[0])})"),
            Form("(interval month, date) -> date", "CAST({1} + {0} AS DATE)"),
            _numbers("+"),
        ),
        "The sum; a time moved on by an interval.",
        written="a + b",
    ),
    Function(
        "-",
        (*_decimals(_added("-"), _sum_type), *_moved("-"), _numbers("-")),
        "The difference; a time moved back by an interval.",
        written="a - b",
    ),
    Function("*", (*_decimals(_multiplied, _product_type), _numbers("*")), "The product.", written="a * b"),
    Function(
        "/",
        (*_decimals(_divided, _quotient_type), Form("(I, I) -> I", "({0} // {1})"), Form("(N, N) -> N", "({0} / {1})")),
        "The quotient: of integers without its fraction, of decimals exact. Integers and decimals cannot be divided by 0.",
        written="a / b",
        spark="`7 / 2` is 3.5 there.",
    ),
    Function(
        "%",
        (*_decimals(_remainder, _remainder_type), Form("(I, J) -> J", "CAST({0} % {1} AS {type})")),
        "The remainder, with the sign of the dividend and the type of the divisor.",
        written="a % b",
        also=("MOD",),
    ),
    function(
        "NEGATE", "(number) -> number", "(-{0})", "The negative.", written="-a", gives=lambda terms: terms[0].type
    ),
    function(
        "PLUS", "(number) -> number", "{0}", "The number itself.", written="+a", gives=lambda terms: terms[0].type
    ),
    function(
        "||", "(string, string) -> string", "({0} || {1})", "Both strings, one behind the other.", written="a || b"
    ),
    _comparison("=", "Whether both are equal; `==` is the same.", "C, C"),
    _comparison("<>", "Whether they differ; `!=` is the same.", "C, C"),
    _comparison("<", "Whether the first is less."),
    _comparison("<=", "Whether the first is less or equal."),
    _comparison(">", "Whether the first is greater."),
    _comparison(">=", "Whether the first is greater or equal."),
    _test("IS NULL", "any", "({0} IS NULL)", "Whether it is NULL."),
    _test("IS NOT NULL", "any", "({0} IS NOT NULL)", "Whether it is not NULL."),
    _test("IS TRUE", "boolean", "({0} IS TRUE)", "Whether it is true, and not NULL."),
    _test("IS NOT TRUE", "boolean", "({0} IS NOT TRUE)", "Whether it is false or NULL."),
    _test("IS FALSE", "boolean", "({0} IS FALSE)", "Whether it is false, and not NULL."),
    _test("IS NOT FALSE", "boolean", "({0} IS NOT FALSE)", "Whether it is true or NULL."),
    function(
        "IS DISTINCT FROM",
        "(C, C) -> boolean",
        "({0} IS DISTINCT FROM {1})",
        "Whether they differ, where NULL is equal to NULL.",
        written="a IS DISTINCT FROM b",
    ),
    function(
        "IS NOT DISTINCT FROM",
        "(C, C) -> boolean",
        "({0} IS NOT DISTINCT FROM {1})",
        "Whether they are equal, where NULL is equal to NULL; `<=>` is the same.",
        written="a IS NOT DISTINCT FROM b",
    ),
    function(
        "BETWEEN",
        "(O, O, O) -> boolean",
        "({0} BETWEEN {1} AND {2})",
        "Whether it is from b to c.",
        written="a [NOT] BETWEEN b AND c",
    ),
    function(
        "BETWEEN SYMMETRIC",
        "(O, O, O) -> boolean",
        "({0} BETWEEN {1} AND {2} OR {0} BETWEEN {2} AND {1})",
        "Whether it is from b to c, or from c to b.",
        written="a [NOT] BETWEEN SYMMETRIC b AND c",
    ),
    function(
        "IN",
        "(C, C...) -> boolean",
        lambda call: f"({call[0]} IN ({', '.join(call.texts[1:])}))",
        "Whether it is one of some values; NULL if it is none and one of them is NULL.",
        written="a [NOT] IN (b, …)",
    ),
    function(
        "LIKE",
        "(string, string, literal string?) -> boolean",
        like,
        "Whether a string is like a pattern: `%` is any text, `_` one character, and what is behind ESCAPE makes them plain.",
        written="a [NOT] LIKE b [ESCAPE c]",
        spark="A backslash escapes there without being named.",
    ),
    function(
        "SIMILAR TO",
        "(string, literal string) -> boolean",
        similar_to,
        "Whether a whole string matches a regular expression of SQL: `%`, `_`, `|`, `*`, `+`, `?`, `{n}`, `( )`, `[ ]`.",
        written="a [NOT] SIMILAR TO b",
    ),
    function("NOT", "(boolean) -> boolean", "(NOT {0})", "The opposite; NULL for NULL.", written="NOT a"),
    function(
        "AND",
        "(boolean...) -> boolean",
        lambda call: f"({' AND '.join(call.texts)})",
        "Whether all are true: false if one is false, else NULL if one is NULL.",
        written="a AND b",
    ),
    function(
        "OR",
        "(boolean...) -> boolean",
        lambda call: f"({' OR '.join(call.texts)})",
        "Whether one is true: true if one is true, else NULL if one is NULL.",
        written="a OR b",
    ),
)
