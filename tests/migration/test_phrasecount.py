"""phrasecount's schema: made at its first use, equal to what revisions made, and kept where it has documents."""

from __future__ import annotations

import subprocess
from contextlib import closing

import psycopg
import pytest
from support.queues import make_queue, one
from support.sessions import in_background, waits
from support.wait import eventually

from pgcombine import schema
from pgcombine.embedded import programs
from pgcombine.phrasecount.database import connect, ensure_schema

BEFORE = "0017"  # the last revision whose schema has phrasecount's tables
DIRECTORY = "insert into phrasecount.directory (path) values ('/texts')"
THERE = "select to_regnamespace('phrasecount') is not null"


def ensure(dsn: str) -> None:
    with closing(connect(dsn)) as conn:
        ensure_schema(conn)


def dump(dsn: str) -> list[str]:
    command = [programs.find().path("pg_dump"), "--schema=phrasecount", "--dbname", dsn]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return sorted(line for line in done.stdout.splitlines() if "restrict " not in line)


def test_a_database_that_never_ran_it_has_nothing_of_it(conn: psycopg.Connection, dsn: str) -> None:
    named = (
        "select p.oid::regprocedure::text from pg_proc p "
        "where p.prosrc like '%phrasecount%' or p.proname like '%phrasecount%'"
    )
    assert not one(conn, THERE)
    assert conn.execute(named).fetchall() == []
    schema.downgrade(dsn, BEFORE)
    assert one(conn, "select count(*) from phrasecount.delta") == 0
    schema.upgrade(dsn)
    assert not one(conn, THERE)


def test_what_it_makes_equals_what_revisions_made(conn: psycopg.Connection, dsn: str) -> None:
    ensure(dsn)
    made = dump(dsn)
    assert any("CREATE UNLOGGED TABLE phrasecount.delta" in line for line in made)
    ensure(dsn)
    assert dump(dsn) == made
    conn.execute("drop schema phrasecount cascade")
    schema.downgrade(dsn, BEFORE)
    conn.execute(DIRECTORY)
    conn.execute("create function phrasecount.keep_search(target text, here boolean) returns void return null")
    schema.upgrade(dsn)
    assert one(conn, "select path from phrasecount.directory") == "/texts"
    ensure(dsn)
    conn.execute("truncate phrasecount.directory restart identity cascade")
    assert dump(dsn) == made


@pytest.mark.parametrize("dead", [True, False])
def test_empty_tables_beside_something_else_stay(conn: psycopg.Connection, dsn: str, dead: bool) -> None:
    """Left-overs of a dead run don't count as documents; a search table that another server keeps does."""
    schema.downgrade(dsn, BEFORE)
    conn.execute(
        "insert into phrasecount.document_chunk values ('\\x01', 0, 'a b c d')"
        if dead
        else "create table phrasecount.search (phrase text)"
    )
    schema.upgrade(dsn)
    assert one(conn, THERE) is not dead
    ensure(dsn)
    conn.execute(DIRECTORY)


def test_an_upgrade_waits_for_the_first_run(conn: psycopg.Connection, dsn: str) -> None:
    schema.downgrade(dsn, BEFORE)
    waiting = "select pid from pg_locks where relation = to_regclass('phrasecount.directory') and not granted"
    with psycopg.connect(dsn) as run:
        run.execute("lock table phrasecount.directory in share update exclusive mode")
        run.execute(DIRECTORY)
        with in_background(lambda: schema.upgrade(dsn)):
            eventually(lambda: conn.execute(waiting).fetchone(), what="the upgrade waits")
            run.commit()
    assert one(conn, "select path from phrasecount.directory") == "/texts"


def test_other_files_are_applied_again(conn: psycopg.Connection, dsn: str) -> None:
    ensure(dsn)
    before = dump(dsn)
    older = "create or replace function phrasecount.clean() returns void language sql as 'select'"
    conn.execute(older)
    ensure(dsn)
    assert dump(dsn) != before  # the comment says that the files are these
    conn.execute("comment on schema phrasecount is 'phrasecount, of the files of an older program'")
    conn.execute("alter table phrasecount.move drop column old_document")
    conn.execute("drop table phrasecount.move, phrasecount.listed")
    ensure(dsn)
    assert dump(dsn) == before


def test_two_first_runs_at_once(conn: psycopg.Connection, dsn: str) -> None:
    with psycopg.connect(dsn) as first, closing(connect(dsn)) as second:
        one(first, "select 1")  # a transaction that stays open
        ensure_schema(first)
        with in_background(lambda: ensure_schema(second)):
            waits(conn, second.info.backend_pid)
            first.commit()
    assert one(conn, "select count(*) from phrasecount.document") == 0


def test_documents_that_were_counted_stay(conn: psycopg.Connection, dsn: str) -> None:
    """Down to a schema whose chunks refer to documents, and up again; what a run that died has left goes."""
    ensure(dsn)
    keep = "select phrasecount.keep(array[%s::bytea], array[1, 1], array[0, 1], array['a b c d', 'b c d e'])"
    chunks = "select encode(document, 'hex'), seq, tokens from phrasecount.document_chunk order by 1, 2"
    for document in ("01", "02"):
        conn.execute(keep, (f"\\x{document}",))
    conn.execute("insert into phrasecount.document values ('\\x01', 1)")
    make_queue(conn)
    one(conn, "select pgcombine_internal.begin_load('00000000-0000-0000-0000-000000000001', 'wc', 'r')")
    conn.execute("select pgcombine_internal.prepare_load('00000000-0000-0000-0000-000000000001', '{}', 0)")
    live = [("01", 0, "a b c d"), ("01", 1, "b c d e")]
    assert len(conn.execute(chunks).fetchall()) == 4
    schema.downgrade(dsn, "0008")
    assert conn.execute(chunks).fetchall() == live
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        conn.execute("insert into phrasecount.document_chunk values ('\\x03', 0, 'x')")
    schema.upgrade(dsn)
    assert conn.execute(chunks).fetchall() == live
    ensure(dsn)
    assert one(conn, "select added from phrasecount.compare(gen_random_uuid(), '/texts')") == 0
    # the load that was prepared isn't taken for one that wrote nothing
    with pytest.raises(psycopg.Error, match="has ended without being applied"):
        conn.execute("select pgcombine_internal.end_load('00000000-0000-0000-0000-000000000001', 'wc', 'r')")
