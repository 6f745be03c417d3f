"""Functions of the user's over columns: row by row, or whole columns of a batch at a time."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from headwater.data.batch import Batch, flat
from headwater.data.rows import Row, decode, encode
from headwater.errors import RowError, short
from headwater.graph.nodes import CallNode
from headwater.graph.nodes.calls import ColumnCall
from headwater.operators.stateless.functions import Outputs
from headwater.operators.user_code import user_code_failed


class CallOperator:
    """Adds the columns of results."""

    def __init__(self, node: CallNode, step: str, row: type[Row]) -> None:
        self._node, self._step = node, step

    def apply(self, batch: Batch) -> Outputs:
        table = batch.table
        for call in self._node.calls:
            columns = [flat(table.column(name)) for name in call.arguments]
            result = (
                self._arrays(call, columns, len(batch)) if call.takes_arrow else self._values(call, columns, len(batch))
            )
            table = table.append_column(pa.field(call.name, call.result), result)
        return [(None, Batch(table, batch.timestamps, kinds=batch.kinds))]

    def _values(self, call: ColumnCall, columns: list[pa.Array], count: int) -> pa.Array:
        function, results = call.function, []
        row: tuple[Any, ...] = ()
        rows = zip(*(decode(column) for column in columns), strict=True) if columns else iter([()] * count)
        try:
            for row in rows:
                results.append(function(*row))
        except BaseException as error:
            said = ", ".join(short(value) for value in row)
            raise user_code_failed(error, f"{self._step}: {call.name}({said})") from None
        return encode(results, pa.field(call.name, call.result), self._step)

    def _arrays(self, call: ColumnCall, columns: list[pa.Array], count: int) -> pa.Array:
        try:
            result: Any = call.function(*columns)
        except BaseException as error:
            raise user_code_failed(error, f"{self._step}: {call.name}") from None
        if not isinstance(result, pa.Array | pa.ChunkedArray) or len(result) != count:
            got = f"{len(result)} values" if isinstance(result, pa.Array | pa.ChunkedArray) else type(result).__name__
            raise RowError.wrong_result(self._step, f"an array of {count} values", got, "return a pyarrow.Array")
        try:
            return flat(result.cast(call.result))
        except (pa.ArrowException, ValueError) as error:
            raise RowError.wrong_result(
                self._step, f"an array of type {call.result}", error, "cast it, or declare another type"
            ) from None
