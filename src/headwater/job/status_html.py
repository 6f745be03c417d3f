"""The status of a job as a notebook shows it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from headwater.job.status import JobStatus
from headwater.job.status_text import status_rows, summary_lines


def status_html(job: str, status: JobStatus, picture: str) -> str:
    """What is going on, the graph as a picture, and a table with a row for each step."""
    first, *more = (escape(line) for line in summary_lines(status))
    said = "".join(f"<div>{line}</div>" for line in more)
    head, *rows = status_rows(status)
    table = f"<table><thead>{_row(head, 'th')}</thead><tbody>{''.join(_row(row, 'td') for row in rows)}</tbody></table>"
    return f"<div><b>{escape(job)}</b> {first}</div>{said}{picture}{table if rows else ''}"


def _row(cells: Sequence[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"
