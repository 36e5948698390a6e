"""Logs as lines of text or JSON, to standard error: what happened to requests and replies, never what was said.

No line holds message text, keys or header values, at any level; there is no option that adds them.
"""

from __future__ import annotations

import logging
import sys
import time
from typing import Any, Literal

import orjson

LogFormat = Literal["text", "json"]

_log = logging.getLogger("paceline.server")
_ACCESS = "uvicorn.access"


def log_event(kind: str, **fields: Any) -> None:
    """One line at level info: what happened, and figures and names about it; those that are None are left out."""
    if _log.isEnabledFor(logging.INFO):
        _log.info(kind, extra={"fields": {key: value for key, value in fields.items() if value is not None}})


def uvicorn_level(level: str) -> str:
    """uvicorn never logs below info: there it shows each frame of a socket, and each header."""
    return "info" if level == "debug" else level


def log_config(level: str, form: LogFormat) -> dict[str, Any]:
    """For `logging.config.dictConfig`: everything the process logs, in one form."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": {"()": _FORMATS[form]}},
        "handlers": {"stderr": {"()": _Stderr, "formatter": "lines"}},
        "root": {"handlers": ["stderr"], "level": level.upper()},
        "loggers": {"uvicorn": {"level": uvicorn_level(level).upper()}},
    }


class _Stderr(logging.Handler):
    """Standard error, wherever it leads by then."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            print(self.format(record), file=sys.stderr, flush=True)
        except Exception:
            self.handleError(record)


def _fields_of(record: logging.LogRecord) -> tuple[str, dict[str, Any]]:
    """A record's sentence and its fields. What uvicorn says of requests and sockets comes without the query string."""
    if record.name.startswith("uvicorn.") and isinstance(record.args, tuple) and str(record.msg).startswith('%s - "'):
        client, *method, path = record.args[: 3 if record.name == _ACCESS else 2]
        about = {"client": client, "method": method[0] if method else "WebSocket", "path": str(path).partition("?")[0]}
        return "http", about | ({"status": record.args[-1]} if isinstance(record.args[-1], int) else {})
    return record.getMessage(), getattr(record, "fields", {})


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        message, fields = _fields_of(record)
        words = [f"{key}={value}" for key, value in fields.items()]
        line = " ".join([record.levelname, record.name, message, *words])
        return "\n".join([line, self.formatException(record.exc_info)] if record.exc_info else [line])


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        message, fields = _fields_of(record)
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        body = {
            "time": f"{stamp}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": message,
            **fields,
        }
        if record.exc_info:
            body["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(body, default=str).decode()


_FORMATS = {"text": _Text, "json": _Json}
