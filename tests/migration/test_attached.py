"""Attached tables after a downgrade to base, and after a dump and restore."""

from __future__ import annotations

import subprocess

import psycopg
import pytest
from support.servers import Server, embedded_only

from pgcombine import schema
from pgcombine.embedded import programs
from pgcombine.queue.combine_queue import CombineQueue

WORDS = CombineQueue("words", key=["word text"], value=["n bigint sum", "docs int count"], buckets=2)
MAPPING = "select word, 2 as n from regexp_split_to_table({}.body, ' ') word where word not like 'x%' and word <> ''"


def counts(conn: psycopg.Connection) -> dict[str, tuple[int, int]]:
    """The totals of pending updates and values for each word."""
    found = conn.execute(
        "select word, sum(n)::bigint, sum(docs)::bigint from (select word, n, docs from pgcombine.words_updates "
        "union all select word, n, docs from pgcombine.words_values) as parts "
        "group by word having (sum(n), sum(docs)) <> (0, 0)"
    )
    return {word: (n, docs) for word, n, docs in found}


def test_downgrade_removes_triggers_of_attached_tables(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("create table public.doc (body text)")
        WORDS.create(conn)
        WORDS.attach(conn, "public.doc", "select body as word")
        schema.downgrade(dsn, "base")
        conn.execute("insert into public.doc values ('a')")
        assert conn.execute("select tgname from pg_trigger where tgrelid = 'public.doc'::regclass").fetchall() == []


@embedded_only
def test_restored_dump_keeps_tables_attached(dsn: str, server: Server) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("create table public.doc (id int, body text) partition by list (id)")
        conn.execute("create table public.doc_1 partition of public.doc for values in (1)")
        WORDS.create(conn)
        WORDS.attach(conn, "public.doc", MAPPING.format("doc"))
        conn.execute("insert into public.doc values (1, 'a b')")
    found = programs.find(server.version)
    dump = subprocess.run([found.path("pg_dump"), "--dbname", dsn], capture_output=True, check=True).stdout
    with server.database() as copy:
        load = [found.path("psql"), "--quiet", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", "--dbname", copy]
        subprocess.run(load, input=dump, capture_output=True, check=True)
        schema.check(copy)
        with psycopg.connect(copy, autocommit=True) as conn:
            with pytest.raises(psycopg.Error, match="is a copy in which post_restore has not run yet"):
                conn.execute("insert into public.doc values (1, 'b c')")
            conn.execute("select pgcombine.post_restore()")
            conn.execute("insert into public.doc values (1, 'b c')")
            conn.execute("create table public.other (body text)")
            WORDS.attach(conn, "public.other", "select body as word, 2 as n")
            conn.execute("insert into public.other values ('d')")
            assert WORDS.verify(conn, recount=True) == []
            assert counts(conn) == {"a": (2, 1), "b": (4, 2), "c": (2, 1), "d": (2, 1)}
            schema.upgrade(copy)
            conn.execute("truncate public.doc_1")
            assert counts(conn) == {"d": (2, 1)}
