"""Logs as lines of JSON, without a question's text and without answers.

Messages of engines and databases can quote literals or data, so that of an exception nobody foresaw only its class and
where it was raised are written. Why a charged question failed is in the ledger, for the controller.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime

QUIET = ("uvicorn.access", "httpx2", "alembic")


class Lines(logging.Formatter):
    """One JSON object a record: time, level, logger, event, and the fields it was given."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
            line["at"] = [f"{frame.name}:{frame.lineno}" for frame in traceback.extract_tb(record.exc_info[2])][-5:]
        return json.dumps(line, ensure_ascii=False, default=str)


def set_up() -> None:
    """Write everything that is logged as lines of JSON on the error stream."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("idios").setLevel(logging.INFO)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        logger.setLevel(logging.WARNING if name in QUIET else logging.INFO)
