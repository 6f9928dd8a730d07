"""Export workers are killed between a delivery and its record, and a server crashes: no entry is lost."""

from __future__ import annotations

import random
import signal
import threading
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from psycopg import conninfo
from support.cli import start_cli
from support.exports import exported, make_export, make_exported, watched, worker_to
from support.queues import combine, combine_all, make_queue, one, values
from support.servers import embedded_only
from support.sessions import in_background
from support.wait import eventually

from pgcombine import schema
from pgcombine.embedded import EmbeddedServer


@embedded_only
def test_killed_worker_delivers_again(conn: psycopg.Connection, dsn: str, target: str) -> None:
    """A worker is killed after it has delivered and before it records the delivery. The next worker delivers again."""
    make_exported(conn, target, buckets=1)
    combine(conn, {"a": 1, "b": 2, "gone": 3})
    env = {"PGPASSWORD": conninfo.conninfo_to_dict(target).get("password")}
    with watched(target), psycopg.connect(dsn) as blocker:
        # after a delivery the worker updates export_bucket.delivered, and the trigger makes this update wait
        blocker.execute(
            "create function hold() returns trigger language plpgsql as $$ begin "
            "perform pg_advisory_xact_lock(20); return new; end $$"
        )
        blocker.execute(
            "create trigger hold before update of delivered on pgcombine.export_bucket "
            "for each row execute function hold()"
        )
        blocker.commit()
        blocker.execute("select pg_advisory_xact_lock(20)")
        with start_cli("export", "run", "search", "--dsn", dsn, env=env) as process:
            pid = eventually(
                lambda: one(
                    conn,
                    "select coalesce(max(pid), 0) from pg_stat_activity "
                    "where wait_event = 'advisory' and datname = current_database()",
                ),
                what="the worker has delivered",
            )
            assert exported(target) == values(conn)
            assert len(conn.execute("select from pgcombine.search_exports").fetchall()) == 3
            process.send_signal(signal.SIGKILL)
            process.wait()
        blocker.rollback()
        conn.execute("select pg_terminate_backend(%s)", (pid,))  # the killed worker's server process may still run
        conn.execute("drop trigger hold on pgcombine.export_bucket")
        combine(conn, {"a": 1, "gone": -3})
    assert worker_to(dsn, target).drain() == 5  # the three unrecorded entries and two new ones
    assert exported(target) == values(conn) == {"a": 2, "b": 2}


@pytest.mark.slow
def test_crashes_lose_no_entry(tmp_path: Path) -> None:
    """One server holds the queue and the destination. It crashes twice, and passes commit asynchronously.

    The destination ends up with the queue's values, and no sequence is used twice.
    """
    server = EmbeddedServer(tmp_path / "home", settings={"fsync": "on"})
    try:
        dsn = server.start()
        schema.upgrade(dsn)
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute("create database there")
            make_queue(conn)
        target = conninfo.make_conninfo(dsn, dbname="there")
        with psycopg.connect(dsn, autocommit=True) as conn:
            make_export(conn, target, batch=20)
        stop = threading.Event()
        highest = 0
        for round_ in range(2):
            source = random.Random(round_)

            def produce(dsn: str = dsn, source: random.Random = source) -> None:
                """Run passes until the server crashes."""
                with suppress(psycopg.OperationalError), psycopg.connect(dsn, autocommit=True) as conn:
                    conn.execute("set synchronous_commit = off")
                    while True:
                        combine(conn, [(source.choice("abcdefgh"), source.choice([-1, 1, 2])) for _ in range(5)])

            exporter = worker_to(dsn, target, concurrency=2, poll=0.01)
            stop.clear()
            with in_background(lambda e=exporter: e.run(stop)), in_background(produce):
                eventually(lambda e=exporter: e.delivered > 100)
                server.stop("immediate")
                stop.set()
            dsn = server.start()
            with psycopg.connect(target, autocommit=True) as there:
                delivered = one(there, "select coalesce(max(pgcombine_seq), 0) from search")
            with psycopg.connect(dsn, autocommit=True) as conn:
                # the sequence must not repeat a number that the destination has seen
                assert one(conn, "select nextval('pgcombine.change_sequence')") > delivered >= highest
            highest = delivered
        with psycopg.connect(dsn, autocommit=True) as conn:
            combine_all(conn)
            conn.execute("select pgcombine.resume_export('search')")
            worker_to(dsn, target).drain()
            assert exported(target) == values(conn)
    finally:
        server.stop()
