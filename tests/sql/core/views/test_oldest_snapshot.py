"""``pgcombine.oldest_snapshot`` names the session, prepared transaction, standby or slot with the oldest snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from support import eventually
from support.clusters import Cluster, started
from support.homes import Filled
from support.queues import add, make_queue, one

from pgcombine.database import sqlfiles

FIGURE = sqlfiles.query("metrics_snapshot")


def holder(conn: psycopg.Connection) -> dict[str, Any]:
    """The view's row, or an empty dictionary if the view has no row."""
    return conn.cursor(row_factory=dict_row).execute("select * from pgcombine.oldest_snapshot").fetchone() or {}


def test_view_names_a_reading_session(conn: psycopg.Connection, dsn: str) -> None:
    with psycopg.connect(dsn, application_name="the holder") as other:
        other.execute("set transaction isolation level repeatable read")
        other.execute("select 'secret'")
        conn.execute("select txid_current()")
        found = holder(conn)
        assert (found["holder"], found["pid"]) == ("session", other.info.backend_pid)
        assert (found["name"], found["state"]) == ("the holder", "idle in transaction")
        assert 0 <= found["age_seconds"] < 600
        assert "secret" not in str(found)
    assert holder(conn) == {}
    assert one(conn, FIGURE) == 0


@pytest.mark.wc
def test_view_names_a_session_that_has_written(conn: psycopg.Connection, dsn: str) -> None:
    """An idle transaction that has written has no snapshot, but marks can't advance beyond its id."""
    with psycopg.connect(dsn) as writer:
        add(writer, {"a": 1})
        conn.execute("select txid_current()")
        found = holder(conn)
        assert (found["holder"], found["pid"]) == ("session", writer.info.backend_pid)
        assert found["transactions"] > 0
        assert 0 < one(conn, FIGURE) < 600
    assert holder(conn) == {}


def test_view_names_a_prepared_transaction(conn: psycopg.Connection, dsn: str) -> None:
    name = f"forgotten in {conn.info.dbname}"
    make_queue(conn)
    with psycopg.connect(dsn, autocommit=True) as other:
        other.execute("begin")
        add(other, {"a": 1})
        other.execute(f"prepare transaction '{name}'")
        found = holder(conn)
        assert (found["holder"], found["pid"], found["name"]) == ("prepared transaction", None, name)
        assert found["role"] == other.info.user
        assert 0 < one(conn, FIGURE) < 600
        other.execute(f"rollback prepared '{name}'")
    assert holder(conn) == {}


@pytest.fixture
def primary(filled: Filled, tmp_path: Path) -> Iterator[Cluster]:
    with started("a", filled, tmp_path) as clusters:
        yield clusters["a"]


def an_hour_passes(conn: psycopg.Connection) -> None:
    """Move the recorded times an hour back."""
    conn.execute("insert into pgcombine.tick (at, next_id) values (now(), 0) on conflict do nothing")
    conn.execute("update pgcombine.tick set at = at - interval '1 hour'")


@pytest.mark.slow
@pytest.mark.parametrize("slot", [None, "of_the_standby"])
def test_view_names_a_standby_or_its_slot(primary: Cluster, tmp_path: Path, slot: str | None) -> None:
    """The snapshot becomes old during a long query on the standby, or if a standby with a slot stops."""
    with primary.standby(tmp_path / "standby") as standby, primary.connect() as conn:
        if slot:
            conn.execute("select pg_create_physical_replication_slot(%s)", (slot,))
        with standby.connect() as other:
            for name, value in (
                ("hot_standby_feedback", "on"),
                ("wal_receiver_status_interval", "1"),
                ("primary_slot_name", slot or ""),
            ):
                other.execute(f"alter system set {name} = '{value}'")
            other.execute("select pg_reload_conf()")
        # If the standby has a slot, the slot holds the standby's snapshot.
        kind = "replication slot" if slot else "standby"
        found = eventually(lambda: (got := holder(conn)).get("holder") == kind and got, what="the standby's snapshot")
        assert found["pid"] == one(conn, "select pid from pg_stat_replication")
        assert 0 <= one(conn, FIGURE) < 600

        with psycopg.connect(standby.direct) as reader:
            reader.execute("set transaction isolation level repeatable read")
            reader.execute("select")
            an_hour_passes(conn)
            eventually(lambda: 3600 <= one(conn, FIGURE) < 4200, what="the primary knows the query on the standby")
        eventually(lambda: one(conn, FIGURE) < 600, what="the primary knows that the query has ended")

        standby.stop()
        if not slot:
            eventually(lambda: not holder(conn))
            return
        an_hour_passes(conn)
        eventually(lambda: holder(conn)["pid"] is None)
        assert 3600 <= one(conn, FIGURE) < 7800
