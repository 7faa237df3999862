"""Log lines: text to read, or JSON, one object a line. Both name the request that they are of."""

import json
import logging
import sys
import time
from collections.abc import Mapping
from enum import StrEnum
from typing import TextIO

from crosswind.api.observe.correlation import current

LINE_CHARACTERS = 20_000  # of a message or a traceback


class LogFormat(StrEnum):
    """Forms of a log line."""

    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    """Levels: failures alone, all that went wrong, or each request as well."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


def configure_logs(form: LogFormat, level: LogLevel, stream: TextIO | None = None) -> None:
    """Log what this process says to a stream, by default stderr."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if form is LogFormat.JSON else TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING if level is LogLevel.INFO else level.value.upper())
    logging.getLogger("crosswind").setLevel(level.value.upper())


class TextLines(logging.Formatter):
    """Lines for people: moment, level, who logs, message and request; control characters are escaped."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, and the traceback in lines after it."""
        request = current()
        of = "" if request is None else f" [{request.request_id}]"
        line = f"{_moment(record)} {record.levelname} {record.name}: {_inert(record.getMessage())}{of}"
        if record.exc_info:
            line += f"\n{self.formatException(record.exc_info)[-LINE_CHARACTERS:]}"
        return line


class JsonLines(logging.Formatter):
    """Lines for programs: `time`, `level`, `logger`, `message`, and where they are known `request_id`, `trace_id`,
    `span_id`, `exception`, and the numbers of a request's line.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return one JSON object without line ends."""
        facts: dict[str, object] = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage()[:LINE_CHARACTERS],
        }
        if (request := current()) is not None:
            facts |= {"request_id": request.request_id, "trace_id": request.trace_id, "span_id": request.span_id}
        if isinstance(record.args, Mapping):
            facts |= {name: value for name, value in record.args.items() if isinstance(value, str | int | float)}
        if record.exc_info:
            facts["exception"] = self.formatException(record.exc_info)[-LINE_CHARACTERS:]
        return json.dumps(facts, ensure_ascii=True)


def _moment(record: logging.LogRecord) -> str:
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{seconds}.{int(record.msecs):03d}Z"


def _inert(text: str) -> str:
    """Return a text that stays in its line, as a client may have sent a part of it."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text[:LINE_CHARACTERS])
