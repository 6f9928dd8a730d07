"""JsonFormatter turns a log record into one line of JSON, with the fields of pgcombine's events."""

from __future__ import annotations

import ast
import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pgcombine
from pgcombine.runtime.json_lines import JsonFormatter

METHODS = {"debug": 0, "info": 0, "warning": 0, "error": 0, "exception": 0, "log": 1}


def line(template: str, *arguments: object, exc_info: object = None) -> dict[str, object]:
    record = logging.LogRecord("pgcombine", logging.INFO, "", 0, template, arguments, exc_info)  # type: ignore[arg-type]
    text = JsonFormatter().format(record)
    assert len(text.splitlines()) == 1
    found = json.loads(text)
    assert found.pop("time").endswith("+00:00")
    assert found.pop("level") == "INFO"
    return dict(found)


def test_fields_have_their_types() -> None:
    assert line("pass queue=%s bucket=%d ms=%.1f", "wc", 3, 1.5) == {
        "event": "pass",
        "queue": "wc",
        "bucket": 3,
        "ms": 1.5,
    }
    assert line("destination.%s name=%s reason=applied_before", "down", "b c=d") == {
        "event": "destination.down",
        "name": "b c=d",
        "reason": "applied_before",
    }


def test_text_without_an_event_becomes_a_message() -> None:
    assert line("the pool %r is full", "a") == {"message": "the pool 'a' is full"}
    assert line("100% done") == {"message": "100% done"}


def test_control_characters_and_tracebacks_stay_in_the_line() -> None:
    assert line("failed error=%s", "a\n\x1b[2J\u2028b")["error"] == "a\n\x1b[2J\u2028b"
    try:
        raise ValueError("a\nb")
    except ValueError:
        assert "ValueError: a\nb" in str(line("failed", exc_info=sys.exc_info())["exception"])


def templates() -> Iterator[str]:
    """Yield the message template of each call such as ``log.info(...)`` in the package."""
    for path in Path(pgcombine.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "log"
                and node.func.attr in METHODS
            ):
                template = node.args[METHODS[node.func.attr]]
                assert isinstance(template, ast.Constant), f"{path}:{node.lineno}"
                yield template.value


def test_every_event_has_fields() -> None:
    assert [one for one in {*templates()} if "event" not in line(one, *[1] * one.count("%"))] == []
