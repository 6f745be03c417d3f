"""From text to statements: Flink SQL, read by sqlglot and by rules of our own for what it does not know."""

from __future__ import annotations

import itertools
import re
from typing import Final

from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from headwater.data.expressions.dialect import DOUBTFUL_IS, Flink, doubtful_is, nesting
from headwater.sql.errors import SqlError
from headwater.sql.text.parser import StatementParser
from headwater.sql.text.places import Place
from headwater.sql.text.secrets import hidden
from headwater.sql.text.statements import (
    Explain,
    Insert,
    Query,
    SetMark,
    Statement,
    StatementSet,
)

MOST_CHARACTERS: Final = 1_000_000
MOST_TOKENS: Final = 100_000
MOST_NESTED: Final = 40
"""Levels of parentheses: of one statement, whose expressions have a bound of their own."""


class _Statements(Flink):
    Parser = StatementParser


def read_statements(text: str) -> list[Statement]:
    """The statements of a text, of which there may be several with semicolons between them."""
    if len(text) > MOST_CHARACTERS:
        raise SqlError.too_large("characters", MOST_CHARACTERS)
    dialect: Dialect = _Statements()
    try:
        tokens = dialect.tokenize(text)
        text = hidden(tokens, text)
        _check_size(tokens, text)
        reader = dialect.parser()
        assert isinstance(reader, StatementParser)
        parsed = [reader.parse_one(chunk, text) for chunk in _chunks(tokens)]
    except RecursionError:
        raise SqlError.too_large("levels of parentheses", MOST_NESTED) from None
    except ParseError as error:
        raise SqlError.unreadable(_place_of(error, text), _problem(error)) from None
    except SqlglotError:  # what it says shows a part of the text
        raise SqlError.unreadable(None, "a quote, a backtick or a comment is not closed") from None
    found: list[Statement] = []
    for one in parsed:
        found += one if isinstance(one, tuple) else [one]
    return _with_sets(found)


def _chunks(tokens: list[Token]) -> list[list[Token]]:
    """The tokens of each statement."""
    chunks: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            chunks.append([])
        else:
            chunks[-1].append(token)
    return [chunk for chunk in chunks if chunk]


def read_query(text: str) -> Query:
    """The one query of a text."""
    statements = read_statements(text)
    if len(statements) != 1 or not isinstance(statements[0], Query):
        raise SqlError.unreadable(
            statements[1].place if len(statements) > 1 else None, "expected one query; env.run_sql takes scripts"
        )
    return statements[0]


def _with_sets(statements: list[Statement]) -> list[Statement]:
    """Statements between BEGIN and END as one."""
    found: list[Statement] = []
    begun: SetMark | None = None
    inside: list[Insert] = []
    for statement in statements:
        if not isinstance(statement, SetMark):
            if begun is None:
                found.append(statement)
            elif isinstance(statement, Insert):
                inside.append(statement)
            else:
                raise SqlError.misplaced(statement.place, "this", "a statement set", "a set holds INSERT INTO alone")
        elif statement.is_begin:
            begun = statement
        elif begun is None or not inside:
            raise SqlError.unreadable(statement.place, "END without a statement set of INSERT INTO before it")
        else:
            found.append(
                StatementSet(begun.place, tuple(inside))
                if begun.explained is None
                else Explain(begun.place, begun.explained, tuple(inside))
            )
            begun, inside = None, []
    if begun is not None:
        raise SqlError.unreadable(begun.place, "the statement set has no END")
    return found


def _check_size(tokens: list[Token], text: str) -> None:
    if len(tokens) > MOST_TOKENS:
        raise SqlError.too_large("words", MOST_TOKENS)
    doubtful = doubtful_is(tokens)
    if doubtful is not None:
        raise SqlError.unreadable(Place(text, doubtful.start, doubtful.end), DOUBTFUL_IS)
    for token, behind in itertools.pairwise(tokens):
        if token.text.upper() == "JSON_OBJECTAGG" and behind.token_type == TokenType.L_PAREN:
            here = Place(text, token.start, token.end)
            raise SqlError.not_supported(here, "JSON_OBJECTAGG", "use ARRAY_AGG of ROW(key, value)")
    deepest, is_balanced = nesting(tokens)
    if deepest > MOST_NESTED:
        raise SqlError.too_large("levels of parentheses", MOST_NESTED)
    if not is_balanced:
        place = Place(text, tokens[-1].start, tokens[-1].end) if tokens else None
        raise SqlError.unreadable(place, "parentheses do not match")


def _place_of(error: ParseError, text: str) -> Place | None:
    found = error.errors[0] if error.errors else {}
    context = found.get("start_context"), found.get("highlight")
    if context[0] is None or found.get("line") is None:
        return None
    lines = text.split("\n")
    line = found["line"]
    start = sum(len(one) + 1 for one in lines[: line - 1]) + found["col"] - len(context[1] or " ")
    start = min(max(0, start), max(0, len(text) - 1))
    return Place(text, start, start + max(0, len(context[1] or " ") - 1))


def _problem(error: ParseError) -> str:
    found = _plain((error.errors[0].get("description") if error.errors else None) or str(error)).removesuffix(".")
    return "something is missing here" if found.startswith("required keyword") else found


def _plain(message: str) -> str:
    """The message of sqlglot in one line, without what underlines on a terminal."""
    plain = re.sub(r"\x1b\[\d+m", "", message).split("\n")[0]
    return plain[:1].lower() + plain[1:]
