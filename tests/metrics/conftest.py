"""A database that has metrics of each kind, and what else the tests of metrics share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import psycopg
import pytest
from support import eventually
from support.exports import make_export
from support.queues import add, combine, make_queue
from support.scrape import daemon, get, samples, value

from pgcombine.feed.feed import Feed
from pgcombine.metrics import database


@pytest.fixture
def busy(conn: psycopg.Connection) -> None:
    """The queue wc with two values, three pending updates, an export, and a feed that a consumer has read up to its
    first change; and a server for which a hint waits."""
    make_queue(conn, buckets=1)
    make_export(conn)
    Feed("words", queue="wc").create(conn)
    conn.execute("select pgcombine.commit_feed('words', 'reader', pgcombine_internal.feed_offset('words'))")
    combine(conn, {"the first key": 1, "the second key": 1})
    add(conn, {"the first key": 1, "the second key": 2, "the third key": 3})
    conn.execute("select pgcombine_internal.handoff_handshake('here')")
    conn.execute("select pgcombine_internal.handoff_register('there', 'host=there user=app')")
    conn.execute(
        "insert into pgcombine.handoff_hint (destination, token, queue, shape, digest, updates, payload, since)"
        " values ('there', gen_random_uuid(), 'wc', gen_random_uuid(), gen_random_uuid(), 3, '{}',"
        " now() - interval '1 h')"
    )
    conn.execute("select pg_stat_force_next_flush()")
    conn.execute("select")  # the end of this statement sends the statistics


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Query the database at each request, even after a failure. Wait longer for answers: the machine may be busy."""
    monkeypatch.setattr(database, "_KEPT_SECONDS", 0.0)
    monkeypatch.setattr(database, "_REST_SECONDS", 0.0)
    monkeypatch.setattr(database, "_STATEMENT_SECONDS", 10.0)
    monkeypatch.setattr(database, "DEADLINE_SECONDS", 20.0)


@pytest.fixture
def series(conn: psycopg.Connection, dsn: str, busy: None) -> Mapping[str, frozenset[str]]:
    """What a real worker serves after a pass: series → names of labels."""
    with daemon("worker", "--poll", 0.1, "--dsn", dsn) as (port, _):
        found = eventually(lambda: value(got := samples(get(port, "/metrics")[1]), "changes_total", queue="wc") and got)
    labels: dict[str, set[str]] = defaultdict(set)
    for name, pairs in found:
        labels[name] |= {label for label, _ in pairs}
    return {name: frozenset(found) for name, found in labels.items()}
