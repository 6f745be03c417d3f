"""The parser of statements: what sqlglot knows, and rules of our own for what it does not."""

from __future__ import annotations

from typing import Any, Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from headwater.sql.errors import SqlError
from headwater.sql.text.places import Place
from headwater.sql.text.queries import QueryParser
from headwater.sql.text.statements import (
    ColumnText,
    CreateTable,
    CreateView,
    Describe,
    Drop,
    Explain,
    Insert,
    Query,
    Reset,
    SetMark,
    SetOption,
    Show,
    WatermarkText,
)

_DETAILS: Final = ("STATE", "CHANGELOG_MODE", "ANALYZE", "ESTIMATED_COST", "PLAN_ADVICE", "JSON_EXECUTION_PLAN")
_NOT_HERE: Final = {
    "ALTER": "drop the table and create it anew",
    "UPDATE": "write a query that gives the rows as they should be",
    "DELETE": "write a query without the rows",
    "TRUNCATE": "drop the table and create it anew",
    "USE": "there is one catalog; name tables plainly",
    "CALL": "use Python for what is not a query",
    "LOAD": "use env.create_function",
    "ANALYZE": "leave it out",
    "MERGE": "write a query that gives the rows as they should be",
}


class StatementParser(QueryParser):
    """Reads statements. `TABLE(TUMBLE(TABLE t, DESCRIPTOR(c), …))` and DDL are not sqlglot's."""

    def parse_one(self, tokens: list[Token], text: str) -> Any:
        """What one statement says."""
        whole: Any = StatementParser._whole_statement
        found = self._parse(whole, tokens, text)
        if len(found) != 1:
            raise SqlError.unreadable(Place(text, tokens[0].start, tokens[0].end), "no statement begins so")
        return found[0]

    def _whole_statement(self) -> Any:
        start = self._curr
        made = self._statement()
        if self._curr:
            self._fail("did not expect this", self._curr)
        place = Place(self.sql, start.start, self._prev.end)
        return made(place)

    def _statement(self) -> Any:
        word = self._curr.text.upper() if self._curr else ""
        if self._match_text_seq("CREATE"):
            return self._create()
        if self._match_text_seq("DROP"):
            return self._drop()
        if self._match_text_seq("SHOW"):
            return self._show()
        if self._match_text_seq("DESCRIBE") or self._match_text_seq("DESC"):
            name = self._name()
            return lambda place: Describe(place, name)
        if self._match_text_seq("EXECUTE"):
            return self._execute()
        if self._match_text_seq("BEGIN", "STATEMENT", "SET"):
            return lambda place: SetMark(place, is_begin=True)
        if self._match_text_seq("END"):
            return lambda place: SetMark(place, is_begin=False)
        if self._match_text_seq("EXPLAIN"):
            return self._explain()
        if self._match_text_seq("INSERT"):
            return self._insert()
        if self._match_text_seq("SET"):
            return self._set()
        if self._match_text_seq("RESET"):
            key = self._string() if self._curr else ""
            return lambda place: Reset(place, key)
        if word in _NOT_HERE:
            raise SqlError.not_supported(self._here(), word, _NOT_HERE[word])
        query = self._query()
        return lambda place: Query(place, query)

    # -- statements -------------------------------------------------------------------------------------------------

    def _create(self) -> Any:
        self._match_text_seq("OR", "REPLACE")
        is_temporary = self._match_text_seq("TEMPORARY")
        if self._match_text_seq("TABLE"):
            return self._create_table()
        if self._match_text_seq("VIEW"):
            return self._create_view()
        what = f"CREATE {'TEMPORARY ' if is_temporary else ''}{self._curr.text.upper() if self._curr else ''}"
        raise SqlError.not_supported(self._here(), what.strip(), "tables and views can be created; functions in Python")

    def _create_table(self) -> Any:
        is_optional = bool(self._match_text_seq("IF", "NOT", "EXISTS"))
        name = self._name()
        columns: list[ColumnText] = []
        said: dict[str, Any] = {"watermark": None, "primary_key": (), "options": {}, "option_places": {}}
        if self._match(TokenType.L_PAREN):
            while not self._is_at(")"):
                self._table_part(columns, said)
                if not self._match(TokenType.COMMA):
                    break
            self._match_r_paren()
        if self._match_text_seq("COMMENT"):
            self._string()
        if self._match(TokenType.PARTITION_BY):
            self._match_l_paren()
            said["partitioned_by"] = tuple(self._parse_csv(self._name))
            self._match_r_paren()
        if self._match_text_seq("WITH"):
            said["options"], said["option_places"] = self._options()
        like, left_out = None, frozenset[str]()
        if self._match_text_seq("LIKE"):
            like, left_out = self._name(), self._like_options()
        if self._match_text_seq("AS"):
            raise SqlError.not_supported(
                self._here(), "CREATE TABLE … AS", "create the table, then INSERT INTO it what the query gives"
            )
        return lambda place: CreateTable(
            place,
            name,
            tuple(columns),
            like=like,
            like_leaves_out=left_out,
            is_if_not_exists=is_optional,
            **said,
        )

    def _table_part(self, columns: list[ColumnText], said: dict[str, Any]) -> None:
        if self._match_text_seq("WATERMARK", "FOR"):
            column = self._parse_column()
            if not self._match_text_seq("AS"):
                self._fail("expected AS and an expression")
            if column is None:
                self._fail("expected a column", self._curr)
            said["watermark"] = WatermarkText(column, *self._told_expression())
            return
        if self._match_text_seq("CONSTRAINT"):
            self._name()
        if self._match(TokenType.PRIMARY_KEY):
            self._match_l_paren()
            said["primary_key"] = tuple(self._parse_csv(self._name))
            self._match_r_paren()
            self._not_enforced()
            return
        columns.append(self._column_text(said))

    def _column_text(self, said: dict[str, Any]) -> ColumnText:
        start = self._curr
        name = self._name()
        place = Place(self.sql, start.start, start.end)
        if self._match_text_seq("AS"):
            computed, text = self._told_expression()
            if self._match_text_seq("COMMENT"):
                self._string()
            return ColumnText(name, computed=computed, computed_text=text, place=place)
        dtype = self._parse_types()
        if not isinstance(dtype, exp.DataType):
            self._fail(f"expected the type of column {name}")
        is_nullable, metadata, is_virtual = True, None, False
        while self._curr and not self._is_at(",", ")"):
            if self._match_text_seq("NOT", "NULL"):
                is_nullable = False
            elif self._match_text_seq("NULL"):
                is_nullable = True
            elif self._match_text_seq("METADATA"):
                metadata = self._string() if self._match_text_seq("FROM") else name
                is_virtual = bool(self._match_text_seq("VIRTUAL"))
            elif self._match(TokenType.PRIMARY_KEY):
                said["primary_key"] = (name,)
                self._not_enforced()
            elif self._match_text_seq("COMMENT"):
                self._string()
            else:
                self._fail("did not expect this behind a column's type", self._curr)
        return ColumnText(
            name, type=dtype, place=place, is_nullable=is_nullable, metadata=metadata, is_virtual=is_virtual
        )

    def _not_enforced(self) -> None:
        if not self._match_text_seq("NOT", "ENFORCED"):
            self._fail("expected NOT ENFORCED behind PRIMARY KEY: a stream's table cannot enforce it")

    def _like_options(self) -> frozenset[str]:
        left_out: set[str] = set()
        if self._match(TokenType.L_PAREN):
            while not self._is_at(")"):
                word = self._curr.text.upper()
                self._advance()
                if word == "EXCLUDING":
                    left_out.add(self._curr.text.upper())
                self._advance()
            self._match_r_paren()
        return frozenset(left_out)

    def _create_view(self) -> Any:
        is_optional = bool(self._match_text_seq("IF", "NOT", "EXISTS"))
        name = self._name()
        columns: tuple[str, ...] = ()
        if self._match(TokenType.L_PAREN):
            columns = tuple(self._parse_csv(self._name))
            self._match_r_paren()
        if self._match_text_seq("COMMENT"):
            self._string()
        if not self._match_text_seq("AS"):
            self._fail("expected AS and a query", self._curr)
        start = self._curr
        query = self._query()
        text = self.sql[start.start : self._prev.end + 1]
        return lambda place: CreateView(place, name, query, columns, is_optional, text)

    def _drop(self) -> Any:
        self._match_text_seq("TEMPORARY")
        kind = "table" if self._match_text_seq("TABLE") else "view" if self._match_text_seq("VIEW") else ""
        if not kind:
            raise SqlError.not_supported(self._here(), "dropping this", "tables and views can be dropped")
        is_optional = bool(self._match_text_seq("IF", "EXISTS"))
        name = self._name()
        return lambda place: Drop(place, kind, name, is_optional)

    def _show(self) -> Any:
        if self._match_text_seq("CREATE", "TABLE") or self._match_text_seq("CREATE", "VIEW"):
            name = self._name()
            return lambda place: Show(place, "create", name)
        for what in ("TABLES", "VIEWS", "FUNCTIONS"):
            if self._match_text_seq(what):
                return lambda place, what=what: Show(place, what.lower())
        raise SqlError.not_supported(
            self._here(), "showing this", "there are SHOW TABLES, VIEWS, FUNCTIONS and CREATE TABLE"
        )

    def _execute(self) -> Any:
        if self._match_text_seq("STATEMENT", "SET"):
            if not self._match_text_seq("BEGIN"):
                self._fail("expected BEGIN", self._curr)
            return self._first_of_set(None)
        insert = self._insert() if self._match_text_seq("INSERT") else None
        if insert is None:
            raise SqlError.not_supported(self._here(), "executing this", "there is EXECUTE STATEMENT SET BEGIN … END")
        return insert

    def _first_of_set(self, explained: str | None) -> Any:
        """BEGIN needs no semicolon, so the first statement of a set may stand right behind it."""
        if not self._curr:
            return lambda place: (SetMark(place, is_begin=True, explained=explained),)
        if not self._match_text_seq("INSERT"):
            self._fail("expected INSERT", self._curr)
        first = self._insert()
        return lambda place: (SetMark(place, is_begin=True, explained=explained), first(place))

    def _explain(self) -> Any:
        self._match_text_seq("PLAN", "FOR")
        details = [word for word in _DETAILS if self._match_text_seq(word)]
        while self._match(TokenType.COMMA):
            details += [word for word in _DETAILS if self._match_text_seq(word)]
        detail = details[0] if details else ""
        if detail in _DETAILS[3:]:
            raise SqlError.not_supported(
                self._here(), f"EXPLAIN {detail}", "there are EXPLAIN, EXPLAIN STATE, CHANGELOG_MODE and ANALYZE"
            )
        if detail == "ANALYZE" and not self._curr:
            return lambda place: Explain(place, detail, ())
        if self._match_text_seq("STATEMENT", "SET", "BEGIN"):
            return self._first_of_set(detail)
        inner = self._insert() if self._match_text_seq("INSERT") else self._query_only()
        return lambda place: Explain(place, detail, (inner(place),))

    def _query_only(self) -> Any:
        query = self._query()
        return lambda place: Query(place, query)

    def _insert(self) -> Any:
        if self._match_text_seq("OVERWRITE"):
            raise SqlError.not_supported(
                self._here(), "INSERT OVERWRITE", "write INSERT INTO: a stream adds to a table"
            )
        if not self._match_text_seq("INTO"):
            self._fail("expected INTO", self._curr)
        table = self._parse_id_var()
        if table is None:
            self._fail("expected the name of a table", self._curr)
        columns: tuple[str, ...] = ()
        if self._is_at("(") and not self._is_word(self._next, "SELECT", "WITH", "VALUES", "("):
            self._match_l_paren()
            columns = tuple(self._parse_csv(self._name))
            self._match_r_paren()
        query = self._query()
        return lambda place: Insert(place, table, table.name, query, columns)

    def _set(self) -> Any:
        if not self._curr:
            return SetOption
        at = Place(self.sql, self._curr.start, self._curr.end)
        key = self._string()
        if not self._match(TokenType.EQ):
            self._fail("expected = and a value", self._curr)
        value = self._string()
        return lambda place: SetOption(place, key, value, at)

    # -- words ------------------------------------------------------------------------------------------------------

    def _name(self) -> Any:
        found = self._parse_id_var()
        if found is None or self._is_word(self._curr, "."):
            self._fail("expected a plain name: there are no catalogs and databases", self._curr)
        return found.name

    def _string(self) -> str:
        if not self._curr or self._curr.token_type != TokenType.STRING:
            self._fail("expected a text in quotes", self._curr)
        text: str = self._curr.text
        self._advance()
        return text

    def _expression(self) -> exp.Expr:
        found = self._parse_disjunction()
        if found is None:
            self._fail("expected an expression", self._curr)
        assert isinstance(found, exp.Expr)
        return found

    def _told_expression(self) -> tuple[exp.Expr, str]:
        """An expression, and the text that it was read from."""
        start = self._curr
        found = self._expression()
        return found, self.sql[start.start : self._prev.end + 1]

    def _options(self) -> tuple[dict[str, str], dict[str, Place]]:
        """Options by name, and where each stands."""
        self._match_l_paren()
        found: dict[str, str] = {}
        places: dict[str, Place] = {}
        while not self._is_at(")"):
            start = self._curr
            key = self._string()
            if not self._match(TokenType.EQ):
                self._fail(f"expected = behind option '{key}'", self._curr)
            if key in found:
                self._fail(f"option '{key}' is given twice", self._prev)
            found[key] = self._string()
            places[key] = Place(self.sql, start.start, start.end)
            if not self._match(TokenType.COMMA):
                break
        self._match_r_paren()
        return found, places

    def _here(self) -> Place | None:
        token = self._prev or self._curr
        return Place(self.sql, token.start, token.end) if token else None
