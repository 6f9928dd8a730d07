"""Databases that the pages show, roles, and settings that let a test see each change of a page at once."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from support.exports import make_export
from support.queues import add, combine_all, hold, make_queue
from support.roles import Roles
from support.site import HOSTILE

from pgcombine.doctor.findings import Finding, Level
from pgcombine.web import checkup, history


@pytest.fixture
def busy(conn: psycopg.Connection) -> None:
    """The queue wc with values and a quarantined key, a paused queue, a healthy queue; an export, a load, a hint."""
    make_queue(conn)
    make_queue(conn, "resting", buckets=2)
    make_queue(conn, "fit", buckets=1)
    make_export(conn)
    add(conn, {"fluo": 3, "spark": 1, "bad": 1})
    hold(conn, "wc", 5, "bigint out of range", word="bad")
    add(conn, {"fluo": 1})
    combine_all(conn)
    conn.execute("select pgcombine.pause('resting')")
    add(conn, {"a": 1}, "resting")
    conn.execute("select pgcombine_internal.begin_load(gen_random_uuid(), 'wc', 'run <1>')")
    conn.execute("select pgcombine_internal.handoff_handshake('here')")
    conn.execute("select pgcombine_internal.handoff_register('there', 'host=there user=app')")
    conn.execute(
        "insert into pgcombine.handoff_hint (destination, token, queue, shape, digest, updates, payload, since)"
        " values ('there', gen_random_uuid(), 'wc', gen_random_uuid(), gen_random_uuid(), 3, '{}',"
        " now() - interval '1 h')"
    )


@pytest.fixture
def hostile(conn: psycopg.Connection) -> None:
    """The queue wc with hostile texts as keys; each key has a value and is quarantined."""
    make_queue(conn)
    for number, word in enumerate(HOSTILE):
        add(conn, {word: 1000 - number})
    combine_all(conn)
    for number, word in enumerate(HOSTILE):
        add(conn, {word: number})
        hold(conn, "wc", 5, f"can't take {word}", word=word)


@pytest.fixture
def roles(conn: psycopg.Connection, dsn: str) -> Iterator[Roles]:
    """Makes roles that aren't superusers."""
    with Roles(conn, dsn) as roles:
        yield roles


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read what the pages show from the database at each request, also after a failure."""
    monkeypatch.setattr(history, "YOUNGEST", 0.0)
    monkeypatch.setattr(history, "MINUTES_EVERY", 0.0)


@pytest.fixture(autouse=True)
def quick_doctor(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace the doctor, which takes seconds, with one that has two fixed findings. Return the DSNs it examined."""
    calls: list[str] = []

    def examine(dsn: str) -> list[Finding]:
        calls.append(dsn)
        found = [Finding(Level.ok, "it answers", "", "", None, "server")]
        return [*found, Finding(Level.error, "it <is> full", "make room", "wc", None, "disk")]

    monkeypatch.setattr(checkup, "examine", examine)
    return calls
