"""Tables that an older version attached: an upgrade makes their triggers anew, and what was wrong with them is gone."""

from __future__ import annotations

import subprocess

import psycopg
import pytest
from migration import test_generations
from support.queues import make_queue, one
from support.servers import Server, embedded_only

from pgcombine import schema
from pgcombine.embedded import programs
from pgcombine.queue.combine_queue import CombineQueue

WORDS = CombineQueue("words", key=["word text"], value=["n bigint sum", "docs int count"], buckets=2)
MAPPING = "select word, 2 as n from regexp_split_to_table({}.body, ' ') word where word not like 'x%' and word <> ''"
ODD = '"odd %s"."The ""docs"" %s"'


def older(dsn: str, *, paths: bool = True) -> None:
    """A queue in a database of revision 0010; ``paths`` False: as before attach stored the search path."""
    test_generations.older(dsn, "0010")
    with psycopg.connect(dsn, autocommit=True) as conn:
        make_queue(conn, "words", value=["n bigint sum", "docs int count"], delete_when=None, buckets=2)
        if not paths:
            (attach,) = (text for text in test_generations.generation("0010") if "function pgcombine.attach(" in text)
            attach = attach.replace(", %L)', _name ||", ")', _name ||").replace(" || _grouped, _path)", " || _grouped)")
            conn.execute(attach.encode())


def counts(conn: psycopg.Connection) -> dict[str, tuple[int, int]]:
    """What is in the tables: a schema that went back a revision has no view of them."""
    found = conn.execute(
        "select word, sum(n)::bigint, sum(docs)::bigint from (select word, n, docs from pgcombine.words_updates "
        "union all select word, n, docs from pgcombine.words_values) as parts "
        "group by word having (sum(n), sum(docs)) <> (0, 0)"
    )
    return {word: (n, docs) for word, n, docs in found}


def states(conn: psycopg.Connection) -> list[tuple[str, str, str]]:
    """The triggers' kinds (1: for each row) and functions."""
    return conn.execute(
        "select tgrelid::regclass::text, tgname, (tgtype & 1)::text || tgfoid::regproc from pg_trigger"
        " where tgname like 'pgcombine_words_%' order by 1, 2"
    ).fetchall()


@pytest.mark.slow
@pytest.mark.parametrize("paths", [True, False])
def test_what_was_wrong_is_gone_after_an_upgrade(empty_dsn: str, paths: bool) -> None:
    older(empty_dsn, paths=paths)
    with psycopg.connect(empty_dsn, autocommit=True) as conn:
        virtual = conn.info.server_version >= 180000
        conn.execute('create schema "odd, ""%s"; set search_path = public, "odd, ""%s"')
        conn.execute("create table doc (id int, body text) partition by list (id)")
        conn.execute("create table doc_1 partition of doc for values in (1)")
        conn.execute("create table doc_2 partition of doc for values in (2)")
        conn.execute("create table base (body text)")
        conn.execute("create table heir () inherits (base)")
        kind = "virtual" if virtual else "stored"
        conn.execute(f"create table gen (raw text, body text generated always as (lower(raw)) {kind})")
        conn.execute(f'create schema "odd %s"; create table {ODD} (id int, "body %" text)')
        for table in ("doc", "base", "gen"):
            conn.execute("select pgcombine.attach('words', %s, %s)", (table, MAPPING.format(table)))
        odd = 'select "body %" as word,\n 1 as n, 1 as docs where "The ""docs"" %s"."body %" not like \'x%\';'
        conn.execute("select pgcombine.attach('words', %s, %s)", (ODD, odd))
        conn.execute("insert into doc values (1, 'a b'), (2, 'b')")
        conn.execute(f"insert into {ODD} values (1, 'o'), (1, 'xo')")  # noqa: S608
        before = counts(conn)
        assert before == {"a": (2, 1), "b": (4, 2), "o": (1, 1)}
        move = "merge into doc using (values (1)) v (x) on id = x when matched then update set id = 2, body = 'm'"
        with conn.transaction(force_rollback=True):
            conn.execute(move)
            assert counts(conn) == before, "the older version is right: this test tests nothing"
        assert not any(function.startswith("1") for *_, function in states(conn))

        schema.upgrade(empty_dsn)
        assert counts(conn) == before
        assert WORDS.verify(conn, recount=True) == []
        assert all("attached_" in function for *_, function in states(conn))
        steps = [
            move,
            "insert into doc_2 values (2, 'c x')",
            "truncate doc_1",
            "insert into base values ('d')",
            "insert into heir values ('e')",
            "truncate only base",
            "insert into gen values ('F F')",
            "update gen set raw = 'G'",
            f"insert into {ODD} values (2, 'p'), (2, 'xp')",  # noqa: S608
            f"update {ODD} set \"body %\" = 'q' where \"body %\" = 'o'",  # noqa: S608
        ]
        for step in steps:
            conn.execute(step)
            assert WORDS.verify(conn, recount=True) == [], step
        assert counts(conn) == {
            "m": (2, 1),
            "b": (2, 1),
            "c": (2, 1),
            "e": (2, 1),
            "g": (2, 1),
            "p": (1, 1),
            "q": (1, 1),
        }
        path = one(conn, "select path from pgcombine.attachment where source = 'doc'::regclass")
        assert path == (["public", 'odd, "%s'] if paths else None)
        made = states(conn)
        schema.upgrade(empty_dsn)
        assert states(conn) == made
        for table in ("doc", "base", "gen", ODD):
            WORDS.detach(conn, table)
        assert states(conn) == []


def test_down_while_a_table_is_attached(dsn: str, empty_dsn: str) -> None:
    """The older version's triggers would be missing."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("create table public.doc (body text)")
        WORDS.create(conn)
        WORDS.attach(conn, "public.doc", "select body as word")
        with pytest.raises(psycopg.Error, match=r'queue "words" is attached to (public\.)?doc'):
            schema.downgrade(dsn, "0010")
        schema.check(dsn)
        schema.downgrade(dsn, "base", force=True)
        conn.execute("insert into public.doc values ('a')")
        assert states(conn) == []


@embedded_only
def test_a_dump_that_is_restored_goes_on(dsn: str, server: Server) -> None:
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
            with pytest.raises(psycopg.Error, match="is a copy that was not adopted yet"):
                conn.execute("insert into public.doc values (1, 'b c')")
            conn.execute("select pgcombine.adopt()")
            conn.execute("insert into public.doc values (1, 'b c')")
            conn.execute("create table public.other (body text)")
            WORDS.attach(conn, "public.other", "select body as word, 2 as n")
            conn.execute("insert into public.other values ('d')")
            assert WORDS.verify(conn, recount=True) == []
            assert counts(conn) == {"a": (2, 1), "b": (4, 2), "c": (2, 1), "d": (2, 1)}
            schema.upgrade(copy)
            conn.execute("truncate public.doc_1")
            assert counts(conn) == {"d": (2, 1)}
