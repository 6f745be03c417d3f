"""Hints in comments: `/*+ STATE_TTL('orders' = '1 h') */`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from headwater.durations import duration_ms
from headwater.errors import DurationError
from headwater.sql.errors import SqlError

if TYPE_CHECKING:
    from headwater.sql.bind.queries import QueryBinder


def state_ttls(binder: QueryBinder, hint: exp.Expr) -> dict[str, int]:
    """For tables, by name or alias, how long what is kept of their rows is kept."""
    found: dict[str, int] = {}
    for call in hint.expressions:
        name = str(call.this).upper() if isinstance(call, exp.Anonymous) else call.sql()
        if name != "STATE_TTL":
            raise SqlError.not_supported(binder.place(call), f"the hint {name}", "there is STATE_TTL('table' = '1 h')")
        for pair in call.expressions:
            if not isinstance(pair, exp.EQ):
                raise SqlError.wrong_expression(
                    binder.place(pair), "STATE_TTL takes tables and durations", "write 'o' = '1 h'"
                )
            try:
                found[pair.this.name] = duration_ms(pair.expression.name, what="STATE_TTL")
            except DurationError as error:
                raise SqlError.wrong_expression(binder.place(pair), str(error), "write 'o' = '1 h'") from None
    return found
