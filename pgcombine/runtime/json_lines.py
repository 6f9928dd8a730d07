"""Log events as JSON: one object per line, with the fields of the event by name.

If a record's message isn't of the form ``event name=value …``, the object has the whole text as ``message``.
"""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime
from typing import Any

from pgcombine.runtime.printable import printable_json

_EVENT = re.compile(r"[\w.%]+( \w+=[^\s=]+)*")
_PLACE = re.compile(r"%[-+ #0]*[\d.]*[a-z]")


class JsonFormatter(logging.Formatter):
    """Formats a record as an object with ``time`` (UTC), ``level``, ``event`` and the event's fields.

    Numbers stay numbers. A traceback is in ``exception``.
    """

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            **_fields(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return printable_json(json.dumps(line, ensure_ascii=False, default=str))


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    template, arguments = str(record.msg), record.args if isinstance(record.args, tuple) else ()
    if not _EVENT.fullmatch(template) or len(_PLACE.findall(template)) != len(arguments):
        return {"message": record.getMessage()}
    left = iter(arguments)

    def filled(part: str) -> Any:
        given = [next(left) for _ in _PLACE.findall(part)]
        number = given and _PLACE.fullmatch(part) and isinstance(given[0], (int, float))
        return given[0] if number else part % tuple(given)

    event, *parts = template.split(" ")
    return {"event": filled(event)} | {
        name: filled(value) for name, _, value in (part.partition("=") for part in parts)
    }
