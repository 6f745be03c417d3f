"""Numbers: rounding, powers, trigonometry."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headwater.data.functions.declared import Function, function
from headwater.data.functions.refusals import Refused
from headwater.data.functions.terms import Call, Term
from headwater.data.functions.types import Type, decimal


def _same(terms: Sequence[Term]) -> Type:
    return terms[0].type


def _whole(terms: Sequence[Term]) -> Type:
    dtype = terms[0].type
    return decimal(dtype.precision, 0) if dtype.is_decimal else dtype


def _floor(name: str) -> Callable[[Call], str]:
    def made(call: Call) -> str:
        if call.terms[0].type.is_integer:
            return call[0]
        return f"CAST({name}({call[0]}) AS {call.type.duckdb})"

    return made


def _sign(call: Call) -> str:
    sign = f"CAST(sign({call[0]}) AS {call.type.duckdb})"
    return f"CASE WHEN isnan({call[0]}) THEN {call[0]} ELSE {sign} END" if call.type.is_approximate else sign


def _rounded_type(terms: Sequence[Term]) -> Type:
    dtype = terms[0].type
    if not dtype.is_decimal:
        return dtype
    places = terms[1].literal if len(terms) == 2 else 0
    if not isinstance(places, int):
        raise Refused("a decimal is rounded to a literal number of places")
    if places >= dtype.scale:
        return dtype
    whole = dtype.precision - dtype.scale
    return decimal(min(38, 1 + whole + max(places, 0)), max(places, 0))


def _rounded(name: str) -> Callable[[Call], str]:
    def made(call: Call) -> str:
        places = call[1] if len(call) == 2 else "0"
        if call.type.is_decimal and not (len(call) == 2 and not call.terms[1].is_literal):
            wide = f"CAST({call[0]} AS DECIMAL({min(38, call.terms[0].type.precision + 1)},{call.terms[0].type.scale}))"
            return f"CAST({name}({wide}, {places}) AS {call.type.duckdb})"
        return f"CAST({name}({call[0]}, {places}) AS {call.type.duckdb})"

    return made


def _of_double(name: str, duckdb: str, meaning: str, **others: object) -> Function:
    return function(name, "(double) -> double", duckdb, meaning, **others)


NUMBERS = (
    function("ABS", "(number) -> number", "abs({0})", "The number without its sign.", gives=_same),
    function(
        "SIGN",
        "(number) -> number",
        _sign,
        "-1, 0 or 1.",
        gives=_same,
    ),
    function(
        "FLOOR", "(number) -> number", _floor("floor"), "The greatest whole number that is not greater.", gives=_whole
    ),
    function(
        "CEIL",
        "(number) -> number",
        _floor("ceil"),
        "The least whole number that is not less.",
        gives=_whole,
        also=("CEILING",),
    ),
    function(
        "ROUND",
        "(number, int?) -> number",
        _rounded("round"),
        "Rounded to so many places, half away from zero.",
        gives=_rounded_type,
    ),
    function("TRUNCATE", "(number, int?) -> number", _rounded("trunc"), "Cut to so many places.", gives=_rounded_type),
    _of_double("SQRT", "sqrt({0})", "The square root; NaN of negative numbers."),
    function(
        "POWER", "(double, double) -> double", "pow({0}, {1})", "The first to the power of the second.", also=("POW",)
    ),
    _of_double("EXP", "exp({0})", "e to the power of it."),
    _of_double("LN", "ln({0})", "The natural logarithm."),
    _of_double("LOG10", "log10({0})", "The logarithm to base 10."),
    _of_double("LOG2", "log2({0})", "The logarithm to base 2."),
    function(
        "LOG",
        "(double) -> double",
        "ln({0})",
        "The natural logarithm, or that of the second to the base of the first.",
        ("(double, double) -> double", "(ln({1}) / ln({0}))"),
    ),
    _of_double("SIN", "sin({0})", "The sine."),
    _of_double("COS", "cos({0})", "The cosine."),
    _of_double("TAN", "tan({0})", "The tangent."),
    _of_double("COT", "(1.0::DOUBLE / tan({0}))", "The cotangent."),
    _of_double("ASIN", "asin({0})", "The arc sine."),
    _of_double("ACOS", "acos({0})", "The arc cosine."),
    _of_double("ATAN", "atan({0})", "The arc tangent."),
    function("ATAN2", "(double, double) -> double", "atan2({0}, {1})", "The arc tangent of a coordinate (y, x)."),
    _of_double("SINH", "sinh({0})", "The hyperbolic sine."),
    _of_double("COSH", "cosh({0})", "The hyperbolic cosine."),
    _of_double("TANH", "tanh({0})", "The hyperbolic tangent."),
    _of_double("DEGREES", "degrees({0})", "Radians as degrees."),
    _of_double("RADIANS", "radians({0})", "Degrees as radians."),
    function("PI", "() -> double", "pi()", "The number pi."),
    function("E", "() -> double", "exp(1.0::DOUBLE)", "The number e."),
)
