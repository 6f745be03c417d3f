"""What a step is given for rows whose function fails, checked before the step is made."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from headwater.data.schema import Schema
from headwater.errors import GraphError
from headwater.functions import OutputTag


def failed_settings(step: str, tag: OutputTag | None, rows: Schema) -> dict[str, Any]:
    """The settings of a `RowFunctionNode` over a stream of these rows."""
    if tag is None:
        return {}
    if not isinstance(tag, OutputTag):
        raise GraphError.bad_argument(step, "sends rows that fail to a hw.OutputTag", tag, "make one for it")
    *columns, error = tag.schema.arrow
    if columns != list(rows.arrow) or error.type != pa.string():
        raise GraphError.bad_argument(
            step,
            "sends its input and, in one more column, the error to failed_to",
            str(tag.schema),
            f"give the tag the schema '{rows}, error string'",
        )
    return {"failed_to": tag, "outputs": {tag.name: tag.schema}}


def refuse_with_state(step: str, tag: OutputTag | None) -> None:
    """Refuse for a function that may have written state before it failed."""
    if tag is not None:
        raise GraphError.bad_argument(
            step,
            "has a function with state, and what a call that fails has written cannot be taken back",
            "failed_to=",
            "catch the error in the function, and send the row on with ctx.output(tag, row)",
        )
