"""The part of the parser that reads queries: tables that are calls, such as `TABLE(TUMBLE(TABLE t, DESCRIPTOR(c), …))`."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from headwater.data.expressions.dialect import FlinkParser


class QueryParser(FlinkParser):
    """Reads queries."""

    FUNC_TOKENS: ClassVar = FlinkParser.FUNC_TOKENS | {TokenType.SESSION}

    def _query(self) -> exp.Query:
        start = self._curr
        query = self._parse_query_modifiers(self._parse_set_operations(self._parse_select(nested=True, table=False)))
        if isinstance(query, exp.Values):
            query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=query))
        if not isinstance(query, exp.Query):
            self._fail("expected SELECT, WITH, VALUES, INSERT, CREATE, EXPLAIN or another statement", start)
        return query

    def _parse_table(self, *args: Any, **settings: Any) -> Any:
        """A table; also `TABLE(TUMBLE(…))` and `LATERAL TABLE(f(…))`, which are calls that give tables."""
        if self._is_table_call():
            call = self._table_call()
            return self._behind(exp.Table(this=call), settings)
        return super()._parse_table(*args, **settings)

    def _is_table_call(self) -> bool:
        return self._is_word(self._curr, "TABLE") and self._is_word(self._next, "(")

    def _table_call(self) -> exp.Expr:
        self._advance(2)
        name = self._curr
        self._advance()
        self._match_l_paren()
        given = [] if self._is_at(")") else self._parse_csv(self._table_argument)
        self._match_r_paren()
        self._match_r_paren()
        return exp.Anonymous(this=name.text.upper(), expressions=given).update_positions(name)

    def _table_argument(self) -> exp.Expr:
        """`TABLE t`, `DESCRIPTOR(c)`, an expression, or one of them behind `NAME =>`."""
        if self._is_word(self._next, "=>"):
            name = exp.Var(this=self._curr.text.upper()).update_positions(self._curr)
            self._advance(2)
            return exp.Kwarg(this=name, expression=self._table_argument())
        if self._match_text_seq("TABLE"):
            table = exp.Table(this=self._parse_id_var())
            if self._match(TokenType.PARTITION_BY):
                is_list = self._match(TokenType.L_PAREN)  # without parentheses it is one column
                columns = self._parse_csv(self._parse_column) if is_list else [self._parse_column()]
                table.set("partition", exp.Tuple(expressions=columns))
                if is_list:
                    self._match_r_paren()
            return table
        if self._is_at("("):
            query = self._parse_select(table=True, nested=True)
            if query is not None:
                return query
        found = self._parse_disjunction()
        if found is None:
            self._fail("expected TABLE name, DESCRIPTOR(column) or an expression")
        return found

    def _parse_lateral(self) -> Any:
        """`LATERAL TABLE(f(x)) AS t (a, b)`."""
        if self._is_word(self._curr, "LATERAL") and self._is_word(self._next, "TABLE"):
            self._advance()
            call = self._table_call()
            return self._behind(exp.Lateral(this=call), {})
        return super()._parse_lateral()

    def _behind(self, made: Any, settings: Any) -> Any:
        alias = self._parse_table_alias(alias_tokens=settings.get("alias_tokens") or self.TABLE_ALIAS_TOKENS)
        if alias:
            made.set("alias", alias)
        if settings.get("joins"):
            for join in self._parse_joins():
                made.append("joins", join)
        return made

    def _fail(self, problem: str, token: Any = None) -> NoReturn:
        self.raise_error(problem, token)
        raise AssertionError(problem)
