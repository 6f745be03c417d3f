"""The form of what the API answers, as OpenAPI describes it."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

INT: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
ANY: Schema = {}
MARK: Schema = {"oneOf": [{"type": "integer"}, {"type": "string", "enum": ["end"]}, {"type": "null"}]}
"""A watermark in milliseconds: null before the first row, 'end' when the input has ended."""


def maybe(schema: Schema) -> Schema:
    """Or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def many(schema: Schema) -> Schema:
    """An array of these."""
    return {"type": "array", "items": schema}


def by_name(schema: Schema) -> Schema:
    """An object of these."""
    return {"type": "object", "additionalProperties": schema}


def record(**fields: Schema) -> Schema:
    """An object with exactly these members."""
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


SUMMARY = record(
    id=TEXT,
    name=TEXT,
    folder=TEXT,
    state=TEXT,
    is_running=FLAG,
    process=maybe(TEXT),
    planned=INT,
    committed=INT,
    published=INT,
    rows_in=INT,
    rows_per_s=maybe(NUMBER),
    watermark_ms=MARK,
    now_ms=INT,
    epoch_ms=maybe(INT),
    since_ms=maybe(INT),
    late=INT,
    dead_letters=INT,
    restarts=INT,
    error=maybe(TEXT),
)
_STEP = record(
    uid=TEXT,
    operation=TEXT,
    level=INT,
    inputs=many(record(step=TEXT, tag=maybe(TEXT), exchange=maybe(TEXT))),
    detail=TEXT,
    schema=TEXT,
    window=maybe(TEXT),
    is_source=FLAG,
    is_sink=FLAG,
    is_stateful=FLAG,
    rows_in=INT,
    rows_out=INT,
    in_per_s=maybe(NUMBER),
    out_per_s=maybe(NUMBER),
    in_flight=INT,
    watermark_ms=MARK,
    subtasks=maybe(INT),
    busy=maybe(NUMBER),
    skew=maybe(NUMBER),
    state_entries=INT,
    state_bytes=INT,
    late=INT,
    dead_letters=INT,
    time_share=NUMBER,
)
_EPOCH = record(
    epoch=INT,
    time_ms=INT,
    duration_ms=INT,
    phases_ms=by_name(NUMBER),
    rows_in=INT,
    changelog_bytes=INT,
    stored_bytes=INT,
    late=INT,
    dead_letters=INT,
    is_committed=FLAG,
    is_published=FLAG,
)
_SPLIT = record(
    source=TEXT,
    split=TEXT,
    rows_in=INT,
    position=maybe(INT),
    watermark_ms=MARK,
    is_idle=FLAG,
    last_rows_ms=maybe(INT),
    moved_ms=maybe(INT),
    is_holding=FLAG,
)
_HOLDING = record(
    source=TEXT,
    split=TEXT,
    watermark_ms=maybe(INT),
    missing_ms=maybe(INT),
    since_ms=maybe(INT),
    last_rows_ms=maybe(INT),
    reason=TEXT,
    way_out=TEXT,
)
_FIRING = record(
    step=TEXT,
    window=TEXT,
    start_ms=maybe(INT),
    end_ms=maybe(INT),
    watermark_ms=MARK,
    missing_ms=maybe(INT),
    verdict={"type": "string", "enum": ["fired", "waits", "ended", "unknown"]},
    because=TEXT,
    holding=many(_HOLDING),
)

_LATE_ROW = record(
    epoch=INT, timestamp_ms=maybe(INT), late_by_ms=maybe(INT), key=maybe(TEXT), row=maybe(TEXT), rows=INT
)

ANSWERS: dict[str, Schema] = {
    "Error": {"type": "object", "properties": {"error": TEXT}, "required": ["error"]},
    "Jobs": record(jobs=many(SUMMARY)),
    "Job": SUMMARY,
    "Graph": record(levels=INT, epochs=INT, took_ms=INT, steps=many(_STEP)),
    "Epochs": record(total=INT, skip=INT, epochs=many(_EPOCH)),
    "Watermarks": record(
        now_ms=INT,
        since_ms=maybe(INT),
        strategies=by_name(TEXT),
        splits=many(_SPLIT),
        steps=many(record(uid=TEXT, watermark_ms=MARK)),
        firings=many(_FIRING),
    ),
    "Firing": _FIRING,
    "Windows": record(step=TEXT, epoch=INT, number=INT, windows=many(record(start_ms=INT, end_ms=INT, entries=INT))),
    "States": record(
        is_running=FLAG,
        steps=many(
            record(
                step=TEXT,
                states=many(record(name=TEXT, entries=INT, bytes=INT)),
                entries=INT,
                bytes=INT,
                expired=INT,
                largest_subtask=maybe(INT),
                subtasks=maybe(INT),
                bytes_per_h=maybe(NUMBER),
                day_bytes=maybe(NUMBER),
                week_bytes=maybe(NUMBER),
            )
        ),
        history=many(record(epoch=INT, time_ms=INT, entries=INT, bytes=INT, stored_bytes=INT)),
    ),
    "Value": record(epoch=INT, entries=INT, found=FLAG, value=ANY),
    "Table": record(epoch=INT, columns=many(record(name=TEXT, type=TEXT)), rows=many(many(ANY)), is_cut=FLAG),
    "Late": record(
        steps=many(
            record(
                step=TEXT,
                late=INT,
                dead_letters=INT,
                rows_in=INT,
                late_to=maybe(TEXT),
                late_rows=many(_LATE_ROW),
                counters=by_name(INT),
                outputs=many(record(tag=TEXT, rows=INT, read_by=many(TEXT))),
            )
        ),
        history=many(record(epoch=INT, late=INT, dead_letters=INT)),
    ),
    "Sinks": record(
        published=INT,
        committed=INT,
        waiting=many(INT),
        most_waiting=INT,
        sinks=many(
            record(
                sink=TEXT,
                detail=TEXT,
                rows=INT,
                paths=many(record(source=TEXT, guarantee=TEXT, reasons=many(TEXT))),
            )
        ),
    ),
    "Failures": record(
        state=TEXT,
        error=maybe(TEXT),
        restarts=many(record(attempt=INT, failed_ms=INT, delay_ms=INT, error=TEXT, message=TEXT, step=maybe(TEXT))),
        log=many(TEXT),
    ),
    "Savepoints": record(
        is_running=FLAG,
        folder=TEXT,
        savepoints=many(record(name=TEXT, path=TEXT, epoch=INT, taken_ms=INT, states=INT, rows=INT, size_bytes=INT)),
    ),
    "Taken": record(savepoint=TEXT),
    "Stopped": record(savepoint=maybe(TEXT), state=TEXT),
    "Verdict": record(name=TEXT, is_whole=FLAG, text=TEXT, steps=by_name(TEXT)),
    "Settings": record(
        job_id=TEXT,
        folder=TEXT,
        savepoints=TEXT,
        engine=maybe(TEXT),
        version=maybe(TEXT),
        started_ms=maybe(INT),
        settings=by_name(TEXT),
    ),
}
