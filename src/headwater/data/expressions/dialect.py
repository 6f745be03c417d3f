"""From text to a tree: the expressions of Flink SQL, read by sqlglot.

sqlglot knows hundreds of functions of many systems and turns them into each other. Here it knows none: a call stays the
name and the arguments that were written, and what they mean is for the table of functions to say. Only forms with words
inside, such as `TRIM(BOTH 'x' FROM s)`, are read by rules of their own.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final

from sqlglot import exp, parser, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from headwater.data.expressions.errors import ExpressionError

MOST_NESTED: Final = 24
"""Levels of parentheses, brackets and CASE: sqlglot takes some twenty Python frames for each, of a thousand there are."""
DOUBTFUL_IS: Final = "IS beside a comparison needs parentheses: (a > 1) IS TRUE, or a > (b IS TRUE)"
MOST_TOKENS: Final = 20_000
"""Longer text is no expression that somebody wrote; reading it would take seconds."""

_OPENING: Final = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE, TokenType.L_BRACE}
_CLOSING: Final = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END, TokenType.R_BRACE}
_COMPARING: Final = {TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE}
_BETWEEN: Final = {
    *(TokenType.AND, TokenType.OR, TokenType.COMMA, TokenType.WHEN, TokenType.THEN, TokenType.ELSE, TokenType.ALIAS),
    *(TokenType.SELECT, TokenType.FROM, TokenType.WHERE, TokenType.ON, TokenType.HAVING, TokenType.GROUP_BY),
    *(TokenType.ORDER_BY, TokenType.JOIN, TokenType.UNION, TokenType.SEMICOLON),
}
"""What ends one condition and begins another."""
_PREFIXES: Final = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE, TokenType.INTERVAL}
_KEPT: Final = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "OVERLAY", "POSITION", "SUBSTRING", "CEIL", "FLOOR")


def _clause(word: str, value: exp.Expr | None) -> exp.Property:
    return exp.Property(this=exp.Var(this=word), value=value)


def _typed_literal(self: Any, this: Any, _: Any) -> Any:  # noqa: ARG001  the names are those that sqlglot gives
    """`TIMESTAMP '…'`, apart from a cast of a string."""
    return exp.Anonymous(this=f"{_.this.name} literal", expressions=[this])


class FlinkParser(parser.Parser):
    """Reads calls as they are written."""

    FUNCTIONS: ClassVar = {}
    NO_PAREN_FUNCTIONS: ClassVar = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar = {"CASE": parser.Parser.NO_PAREN_FUNCTION_PARSERS["CASE"]}
    FUNCTION_PARSERS: ClassVar = {
        **{name: parser.Parser.FUNCTION_PARSERS[name] for name in _KEPT},
        "CEILING": parser.Parser.FUNCTION_PARSERS["CEIL"],
        **{
            name: lambda self, name=name: self.parse_json_call(name)
            for name in ("JSON_VALUE", "JSON_QUERY", "JSON_EXISTS")
        },
    }
    COLUMN_OPERATORS: ClassVar = {
        kind: parser.Parser.COLUMN_OPERATORS[kind] for kind in (TokenType.DOT, TokenType.DCOLON)
    }  # 1.5D is read as 1.5::DOUBLE
    FACTOR: ClassVar = {**parser.Parser.FACTOR, TokenType.DPIPE: exp.DPipe}
    TYPE_LITERAL_PARSERS: ClassVar = {
        exp.DType.TIMESTAMP: _typed_literal,
        exp.DType.DATE: _typed_literal,
        exp.DType.TIME: _typed_literal,
    }

    def parse_json_call(self, name: str) -> exp.Expr:
        """`JSON_VALUE(json, path RETURNING type NULL ON EMPTY …)`: the words behind the path are arguments too."""
        given = self._parse_csv(self._parse_disjunction)
        clauses: list[exp.Expr] = []
        while not self._is_at(")"):
            if self._match_text_seq("RETURNING"):
                returned = self._parse_types()
                if returned is None:
                    self.raise_error("Expected a type after RETURNING")
                clauses.append(_clause("RETURNING", returned))
                continue
            value: exp.Expr | None = None
            if self._match_text_seq("DEFAULT"):
                value = self._parse_disjunction()
            words = []
            while not self._is_at("ON", ")", "WRAPPER"):
                words.append(self._curr.text.upper())
                self._advance()
            said = value or exp.Var(this=" ".join(words))
            if self._match_text_seq("WRAPPER"):
                clauses.append(_clause("WRAPPER", said))
            elif self._match_text_seq("ON") and not self._is_at(")"):
                clauses.append(_clause(f"ON {self._curr.text.upper()}", said))
                self._advance()
            else:
                self.raise_error("Expected ON EMPTY or ON ERROR")
        return exp.Anonymous(this=name, expressions=[*given, *clauses])

    def _parse_types(self, *args: Any, **settings: Any) -> Any:
        """A type; also `ROW<name type, …>`, whose fields may say NOT NULL, which no row of ours knows."""
        if not (self._curr and self._curr.text.upper() == "ROW" and self._next and self._next.text == "<"):
            return super()._parse_types(*args, **settings)
        self._advance(2)
        fields = self._parse_csv(self._parse_row_field)
        if not self._match(TokenType.GT):
            self.raise_error("Expected > behind the fields of ROW")
        return exp.DataType(this=exp.DType.STRUCT, expressions=fields, nested=True)

    def _parse_row_field(self) -> exp.Expr:
        name, dtype = self._parse_id_var(), self._parse_types()
        if name is None or dtype is None:
            self.raise_error("Expected the name and the type of a field")
        self._match_text_seq("NOT", "NULL")
        return exp.ColumnDef(this=name, kind=dtype)

    def _is_at(self, *words: str) -> bool:
        """Whether one of some words comes next, or the end."""
        return not self._curr or self._is_word(self._curr, *words)

    def _is_word(self, token: Any, *words: str) -> bool:
        """Whether there is a token that is one of some words or signs; what is in quotes is none."""
        if not token or token.token_type in self.TEXT_MATCH_EXCLUDED_TOKENS:
            return False
        return token.text.upper() in words


class _FlinkTokenizer(tokens.Tokenizer):
    COMMANDS: ClassVar = set[TokenType]()
    IDENTIFIERS: ClassVar = ["`"]
    QUOTES: ClassVar = ["'"]
    STRING_ESCAPES: ClassVar = ["'"]
    HEX_STRINGS: ClassVar = [("x'", "'"), ("X'", "'")]
    NUMERIC_LITERALS: ClassVar = {"L": "BIGINT", "S": "SMALLINT", "Y": "TINYINT", "D": "DOUBLE", "F": "FLOAT"}


class Flink(Dialect):
    """Flink SQL, as far as expressions go. Names of other systems for the same, such as `==`, are read too."""

    Tokenizer = _FlinkTokenizer
    Parser = FlinkParser


def parse(text: str, step: str) -> exp.Expr:
    """The tree of one expression, perhaps with a name behind it, or a star."""
    given: object = text
    if not isinstance(given, str) or not given.strip():
        raise ExpressionError.not_one_expression(step, str(given))
    try:
        read = Flink().tokenize(f"SELECT {text}")
        _check_size(read, text, step)
        parsed = Flink().parser().parse(read, text)
    except RecursionError:
        raise ExpressionError.too_deep(step, text, MOST_NESTED) from None
    except SqlglotError as error:
        raise ExpressionError.unreadable_expression(step, text, _plain(str(error))) from None
    if len(parsed) != 1 or not isinstance(parsed[0], exp.Select) or len(parsed[0].expressions) != 1:
        raise ExpressionError.not_one_expression(step, text)
    if any(value for name, value in parsed[0].args.items() if name != "expressions"):
        raise ExpressionError.not_one_expression(step, text)
    found = parsed[0].expressions[0]
    assert isinstance(found, exp.Expr)
    return found


def nesting(read: list[Token]) -> tuple[int, bool]:
    """How deep the deepest level of parentheses, brackets, CASE and prefixes is, and whether parentheses match."""
    depth = prefixes = open_ones = deepest = 0
    for token in read:
        prefixes = prefixes + 1 if token.token_type in _PREFIXES else 0
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        open_ones += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        deepest = max(deepest, depth + prefixes)
    return deepest, open_ones == 0


def doubtful_is(read: list[Token]) -> Token | None:
    """An IS beside a comparison, without parentheses: Flink compares first, sqlglot last."""
    seen: list[set[str]] = [set()]
    for token in read:
        if token.token_type in _OPENING:
            seen.append(set())
        elif token.token_type in _CLOSING:
            seen = seen[:-1] or [set()]
        elif token.token_type in _BETWEEN:
            seen[-1].clear()
        elif token.token_type == TokenType.IS or token.token_type in _COMPARING:
            kind = "is" if token.token_type == TokenType.IS else "compares"
            if seen[-1] - {kind}:
                return token
            seen[-1].add(kind)
    return None


def _check_size(read: list[Token], text: str, step: str) -> None:
    deepest, is_balanced = nesting(read)
    if deepest > MOST_NESTED:
        raise ExpressionError.too_deep(step, text, MOST_NESTED)
    if not is_balanced:  # sqlglot does not mind where TRIM, CAST and others end
        raise ExpressionError.unreadable_expression(step, text, "parentheses do not match")
    if len(read) > MOST_TOKENS:
        raise ExpressionError.too_long(step, len(read), MOST_TOKENS)
    if doubtful_is(read) is not None:
        raise ExpressionError.unreadable_expression(step, text, DOUBTFUL_IS)


def _plain(message: str) -> str:
    """The message of sqlglot in one line, without what underlines on a terminal."""
    return re.sub(r"\x1b\[\d+m", "", message).split("\n")[0]
