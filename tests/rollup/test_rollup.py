"""The class ``Rollup`` creates, backfills, verifies and drops rollups. Its errors have pgcombine's classes."""

from __future__ import annotations

import psycopg
import pytest
from support.queues import one, rows

from pgcombine import Rollup
from pgcombine.errors import InvalidDefinitionError, QueueExistsError, QueueNotEmptyError, QueueNotFoundError
from pgcombine.rollup.rollup import rollups

SPEND = Rollup(
    "spend",
    source="public.requests",
    key="customer",
    value=["count(*) as requests", "max(tokens) as most", "count(distinct tokens) as sizes"],
    filter="tokens > 0",
    keep="tokens < 5",
    buckets=2,
    slice_by="tokens",
)


@pytest.fixture
def conn(conn: psycopg.Connection) -> psycopg.Connection:
    """A connection to a database whose table ``requests`` has rows."""
    conn.execute("create table public.requests (customer text, tokens int)")
    conn.execute("create index on public.requests (customer)")
    conn.execute("insert into public.requests values ('acme', 5), ('acme', 7), ('acme', 0), ('duck', 1)")
    return conn


def test_rollup_is_created_backfilled_verified_and_dropped(conn: psycopg.Connection) -> None:
    SPEND.create(conn)
    (found,) = rollups(conn, "spend")
    assert {name: text for name, text in found.items() if name not in ("rollup", "ready_at")} == {
        "source": "requests",
        "key": SPEND.key,
        "value": SPEND.value,
        "filter": "tokens > 0",
        "keep": "tokens < 5",
        "slice_by": "tokens",
        "state": "not backfilled",
        "problems": [],
    }
    assert rows(conn, "spend") == []
    assert list(SPEND.backfill(conn)) == [(0, 0), (1, 1)]
    assert list(SPEND.backfill(conn)) == [(1, 1)]
    assert rollups(conn)[0]["state"] == "ready"
    shown = conn.execute(b"select * from " + SPEND.view.as_bytes(conn) + b" order by 1").fetchall()
    assert shown == [("acme", 2, 7, 2), ("duck", 1, 1, 1)]
    assert SPEND.verify(conn) == []
    conn.execute("delete from public.requests where tokens < 7")
    assert conn.execute("select requests from pgcombine.spend order by customer").fetchall() == [(1,), (1,)]
    assert SPEND.verify(conn) == []
    conn.execute("insert into pgcombine.spend_updates (customer, requests) values ('acme', 10)")
    assert SPEND.verify(conn, repair=True) == ["key (acme): requests lacks -10"]
    assert SPEND.verify(conn) == []
    assert SPEND.queue.backlog(conn) > 0
    SPEND.drop(conn)
    assert rollups(conn) == []
    conn.execute("insert into public.requests values ('acme', 1)")


def test_a_single_expression_may_be_a_string() -> None:
    rollup = Rollup("spend", source="requests", key="customer", value="count(*) as n")
    assert (rollup.key, rollup.value) == (["customer"], ["count(*) as n"])
    assert repr(rollup) == "Rollup('spend')"


def test_rollup_belongs_to_the_callers_transaction(conn: psycopg.Connection) -> None:
    with conn.transaction(force_rollback=True):
        SPEND.create(conn)
        with pytest.raises(InvalidDefinitionError):
            next(SPEND.backfill(conn))
    assert rollups(conn) == []


@pytest.mark.parametrize("level", [None, psycopg.IsolationLevel.SERIALIZABLE])
def test_backfill_goes_on_after_its_last_slice(conn: psycopg.Connection, level: psycopg.IsolationLevel | None) -> None:
    SPEND.create(conn)
    conn.isolation_level = level
    conn.autocommit = False
    assert next(SPEND.backfill(conn)) == (0, 0)
    assert conn.isolation_level == level
    (found,) = rollups(conn, "spend")
    conn.commit()
    assert found["state"] == "backfilled down to 0"
    assert list(SPEND.backfill(conn)) == [(1, 1)]


def test_errors_are_mapped(conn: psycopg.Connection) -> None:
    SPEND.create(conn)
    SPEND.create(conn, if_not_exists=True)
    with pytest.raises(QueueExistsError):
        SPEND.create(conn)
    with pytest.raises(QueueExistsError):
        Rollup("spend", source="requests", key="customer", value="count(*) as n").create(conn, if_not_exists=True)
    with pytest.raises(InvalidDefinitionError):
        Rollup("other", source="requests", key="customer", value="tokens").create(conn)
    with pytest.raises(InvalidDefinitionError):
        SPEND.verify(conn)
    for call in (Rollup("none").verify, Rollup("none").drop):
        with pytest.raises(QueueNotFoundError):
            call(conn)
    with pytest.raises(QueueNotFoundError):
        list(Rollup("none").backfill(conn))
    conn.execute("select pgcombine.create_export('out', 'spend')")
    with pytest.raises(QueueNotEmptyError):
        SPEND.drop(conn)
    SPEND.drop(conn, force=True)
    assert one(conn, "select count(*) from pgcombine.queue") == 0
