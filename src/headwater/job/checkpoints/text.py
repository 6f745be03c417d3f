"""Checkpoints as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.job.watermark_text import mark_text
from headwater.moments import moment_text
from headwater.sizes import size_text

if TYPE_CHECKING:
    from headwater.job.checkpoints.listing import Checkpoint

_COLUMNS = ("epoch", "computed (UTC)", "took", "added", "stored", "rows in", "published")


def table(job_dir: Path, found: Iterable[Checkpoint], damaged: Mapping[int, str]) -> str:
    """A line for each checkpoint, and for each that should be one."""
    cells = {one.epoch: _cells(one) for one in found}
    widths = [max(map(len, column)) for column in zip(_COLUMNS, *cells.values(), strict=True)]
    lines = {epoch: _justified(row, widths) for epoch, row in cells.items()}
    lines |= {epoch: f"{epoch:>{widths[0]}}  damaged: {why}" for epoch, why in damaged.items()}
    head = [f"checkpoints in {job_dir}", _justified(_COLUMNS, widths)]
    return "\n".join(head + [lines[epoch] for epoch in sorted(lines)])


def detail(one: Checkpoint) -> str:
    """A checkpoint with its sources and steps."""
    took = "" if one.duration_ms is None else f" in {one.duration_ms} ms"
    stored = "" if one.stored_bytes is None else f", {size_text(one.stored_bytes)} stored"
    lines = [
        f"checkpoint of epoch {one.epoch} in {one.job_dir}",
        f"computed {moment_text(one.time_ms)}{took}, at processing time {moment_text(one.now_ms)}",
        f"state: {size_text(one.size_bytes)} added{stored}",
        f"rows: {'published' if one.published else 'not yet published'}{', the input has ended' if one.ended else ''}",
    ]
    for uid, splits in one.positions.items():
        before = one.starts.get(uid, {})
        ranges = (f"{s}: {f'{before[s]} to ' if s in before else ''}{at}" for s, at in splits.items())
        lines.append(f"source {uid}: {', '.join(ranges)}")
    for uid, step in one.steps.items():
        lines.append(
            f"step {uid}: {step.rows_in} rows in, {step.rows_out} out, watermark {mark_text(step.watermark_ms)}"
        )
        for state, entries in step.state.items():
            lines.append(
                f"  {state}: {entries} entries, {size_text((step.changelog_bytes or {}).get(state, 0))} written"
            )
    return "\n".join(lines)


def _cells(one: Checkpoint) -> tuple[str, ...]:
    rows = sum(one.steps[uid].rows_in for uid in one.positions if uid in one.steps)
    known = one.duration_ms is not None
    took, read = (f"{one.duration_ms} ms", str(rows)) if known else ("?", "?")
    stored = "?" if one.stored_bytes is None else size_text(one.stored_bytes)
    return (
        str(one.epoch),
        moment_text(one.time_ms),
        took,
        size_text(one.size_bytes),
        stored,
        read,
        "yes" if one.published else "no",
    )


def _justified(cells: tuple[str, ...], widths: list[int]) -> str:
    return "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
