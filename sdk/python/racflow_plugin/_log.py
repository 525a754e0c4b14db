"""The log: lines of JSON on standard error, which racflow filters by level."""
from __future__ import annotations

import json
import logging
import sys
import traceback

_LEVELS = {"WARNING": "WARN", "CRITICAL": "ERROR", "NOTSET": "DEBUG"}
_OWN = frozenset(logging.LogRecord("", 0, "", 0, "", (), None).__dict__) | {"message", "asctime", "taskName"}


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {"level": _LEVELS.get(record.levelname, record.levelname), "msg": record.getMessage()}
        if not record.name.startswith("racflow"):
            line["logger"] = record.name
        line.update((name, value) for name, value in record.__dict__.items() if name not in _OWN and name not in line)
        if record.exc_info:
            line["stack"] = "".join(traceback.format_exception(*record.exc_info))
        return json.dumps(line, default=str)


def to_stderr() -> None:
    """Sends what is logged to standard error: all of the stage's, and from INFO on that of other packages."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    logging.getLogger("racflow").setLevel(logging.DEBUG)
