"""phrasecount creates its schema at its first use, and applies its files again after they change."""

from __future__ import annotations

import subprocess
from contextlib import closing

import psycopg
from support.queues import one
from support.sessions import in_background, waits

from pgcombine.embedded import programs
from pgcombine.phrasecount.database import connect, ensure_schema


def ensure(dsn: str) -> None:
    with closing(connect(dsn)) as conn:
        ensure_schema(conn)


def dump(dsn: str) -> list[str]:
    command = [programs.find().path("pg_dump"), "--schema=phrasecount", "--dbname", dsn]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return sorted(line for line in done.stdout.splitlines() if "restrict " not in line)


def test_new_database_has_no_phrasecount_schema(conn: psycopg.Connection, dsn: str) -> None:
    named = (
        "select p.oid::regprocedure::text from pg_proc p "
        "where p.prosrc like '%phrasecount%' or p.proname like '%phrasecount%'"
    )
    assert one(conn, "select to_regnamespace('phrasecount')") is None
    assert conn.execute(named).fetchall() == []


def test_changed_files_are_applied_again(conn: psycopg.Connection, dsn: str) -> None:
    ensure(dsn)
    before = dump(dsn)
    older = "create or replace function phrasecount.clean() returns void language sql as 'select'"
    conn.execute(older)
    ensure(dsn)
    assert dump(dsn) != before  # the schema's comment has the files' digest, so the files aren't applied again
    conn.execute("comment on schema phrasecount is 'phrasecount, of the files of an older program'")
    conn.execute("alter table phrasecount.move drop column old_document")
    conn.execute("drop table phrasecount.move, phrasecount.listed")
    ensure(dsn)
    assert dump(dsn) == before


def test_concurrent_first_runs_create_one_schema(conn: psycopg.Connection, dsn: str) -> None:
    with psycopg.connect(dsn) as first, closing(connect(dsn)) as second:
        one(first, "select 1")  # begins a transaction, which ensure_schema doesn't commit
        ensure_schema(first)
        with in_background(lambda: ensure_schema(second)):
            waits(conn, second.info.backend_pid)
            first.commit()
    assert one(conn, "select count(*) from phrasecount.document") == 0
