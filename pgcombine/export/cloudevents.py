"""Entries as CloudEvents 1.0, in the JSON batch format.

An event's ``id`` is made of the export and ``seq``. Its ``source`` is made of the server's system identifier, the
database and the queue. Both together are unique. ``time`` is the start of the transaction that wrote the entry, usually
a pass. ``sequence`` is ``seq`` with 19 digits, as a text that sorts like the number.

``subject`` is the key: its text, or a JSON array for a key with several columns. An event lacks the subject if the key
is empty, or has a character that CloudEvents exclude. ``data.key`` has the key in any case.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from unicodedata import category
from urllib.parse import quote

from pgcombine.export.entries import Entry

CONTENT_TYPE = "application/cloudevents-batch+json"
_EXCLUDED = {"Cc", "Cn"}  # categories of Unicode: control characters, and code points without a character
_decoder = json.JSONDecoder(parse_int=str, parse_float=str)  # numbers stay texts: Python limits the digits of an int


class CloudEvents(NamedTuple):
    """Makes the events of one export. ``keys`` are the names of the queue's key columns."""

    export: str
    source: str
    keys: Sequence[str]

    def batch(self, entries: Iterable[Entry]) -> str:
        """Return the entries as a JSON array of events."""
        return f"[{', '.join(self._event(entry) for entry in entries)}]"

    def _event(self, entry: Entry) -> str:
        columns = _members(entry.json)
        key = {name: columns.pop(name) for name in self.keys}
        attributes = {
            "specversion": "1.0",
            "id": f"{self.export}-{entry.seq}",
            "source": self.source,
            "type": "pgcombine.change",
            "time": json.loads(columns["pgcombine_at"]),
            "sequence": f"{entry.seq:019}",
            "datacontenttype": "application/json",
        }
        subject = _subject(list(key.values()))
        if subject and _EXCLUDED.isdisjoint(map(category, subject)):
            attributes["subject"] = subject
        data = {"key": _joined(key), "old": _value(columns, "old_"), "new": _value(columns, "new_")}
        return f'{json.dumps(attributes)[:-1]}, "data": {_joined(data)}}}'


def source(server: int, database: str, queue: str) -> str:
    """Return the source of a queue's events."""
    return f"/pgcombine/{server}/{quote(database, safe='')}/{queue}"


def _members(text: str) -> dict[str, str]:
    """Return the members of ``text``, a JSON object as PostgreSQL writes jsonb. The values stay JSON texts."""
    found = {}
    end = 0
    while text[end] != "}":
        name, start = _decoder.raw_decode(text, end + 1 + bool(end))
        _, end = _decoder.raw_decode(text, start + 2)
        found[name] = text[start + 2 : end]
    return found


def _joined(members: dict[str, str]) -> str:
    return f"{{{', '.join(f'{json.dumps(name)}: {text}' for name, text in members.items())}}}"


def _value(columns: dict[str, str], prefix: str) -> str:
    found = {name.removeprefix(prefix): text for name, text in columns.items() if name.startswith(prefix)}
    return "null" if set(found.values()) == {"null"} else _joined(found)


def _subject(key: list[str]) -> str:
    if len(key) > 1:
        return f"[{', '.join(key)}]"
    return str(json.loads(key[0])) if key[0].startswith('"') else key[0]
