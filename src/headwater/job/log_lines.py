"""The lines of the library's log: as text, or each as an object of JSON with the job, epoch and step that it is about."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

from headwater.words import LogFormat

FACTS = ("job", "epoch", "step")
"""What a record may be about, as its attributes: `log.info(text, extra={"job": name, "epoch": 7})`."""


class JsonLines(logging.Formatter):
    """A record as one object on one line: time, level, logger, message, what it is about, and the error if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **{name: getattr(record, name) for name in FACTS if getattr(record, name, None) is not None},
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


def line_format(form: LogFormat) -> logging.Formatter:
    """What makes a line of a record."""
    return JsonLines() if form == "json" else logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
