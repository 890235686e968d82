"""Logs as lines of JSON, without a question's text and without answers.

Messages of engines and databases can quote literals or data, so of an unexpected exception only its class and where it
was raised are written. Why a charged question failed is in the ledger, for the controller.

A line that repeats is written a few times a minute; the next one says how many were left out. Lines of requests are
all written, except those of requests that were turned away unread: any client can cause these as fast as they like.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from threading import Lock

from idios.display import escape_json

REQUEST = "request"
"""The event of the line that every request has."""
TURNED_AWAY = (408, 413, 429)
EACH_MINUTE = 5
"""How often a line that repeats is written."""
MOST = 1000
"""How many different lines are remembered."""
QUIET = ("uvicorn.access", "httpx2")


class JsonFormatter(logging.Formatter):
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
        return escape_json(json.dumps(line, ensure_ascii=False, default=str))  # a client chose the path


class Throttle(logging.Filter):
    """Lets a line that repeats through a few times a minute, and says with the next how many it held back."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._lock = Lock()
        self._seen: OrderedDict[tuple[object, ...], tuple[float, int]] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is written."""
        fields = getattr(record, "fields", {})
        if record.msg == REQUEST and fields.get("status") not in TURNED_AWAY:
            return True
        key = (record.name, record.levelno, str(record.msg).partition("\n")[0], fields.get("status"))
        now = self._clock()
        with self._lock:
            began, count = self._seen.pop(key, (now, 0))
            held_back = 0
            if now - began >= 60:
                began, count, held_back = now, 0, max(0, count - EACH_MINUTE)
            self._seen[key] = began, count + 1
            if len(self._seen) > MOST:
                self._seen.popitem(last=False)
        if held_back:
            record.fields = {**fields, "held_back": held_back}
        return count < EACH_MINUTE


def configure_logging() -> None:
    """Write everything that is logged as lines of JSON on the error stream."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    handler.addFilter(Throttle())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("idios").setLevel(logging.INFO)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        logger.setLevel(logging.WARNING if name in QUIET else logging.INFO)
