"""A dump that is restored elsewhere goes on: no transaction numbers or snapshots are stored that mean nothing there."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from support.audit import audit, audited, follow
from support.queues import add, combine_all, current, enqueue, hold, make_queue, one, values
from support.servers import Server, embedded_only

from pgcombine import quarantine, schema
from pgcombine.embedded import programs
from pgcombine.queue import CombineQueue
from pgcombine.worker import drain

WC = CombineQueue("wc")


@contextmanager
def restored(dsn: str, server: Server) -> Iterator[str]:
    """The URI of a database into which a dump of ``dsn`` is loaded."""
    found = programs.find(server.version)
    dump = subprocess.run([found.path("pg_dump"), "--dbname", dsn], capture_output=True, check=True).stdout
    with server.database() as copy:
        load = [found.path("psql"), "--quiet", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", "--dbname", copy]
        subprocess.run(load, input=dump, capture_output=True, check=True)
        yield copy


@embedded_only
def test_a_queue_survives_dump_and_restore(conn: psycopg.Connection, dsn: str, server: Server) -> None:
    make_queue(conn)
    audit(conn)
    add(conn, [(f"w{i}", 1) for i in range(50)])
    drain(dsn, "wc", timeout=60)
    # pending when it is dumped: plain rows, and packed ones
    add(conn, {"w0": 1, "new": 2})
    enqueue(conn, [{"word": f"w{i % 70}", "n": 1} for i in range(700)])
    assert one(conn, "select count(*) < 702 from pgcombine.wc_updates")
    expected = Counter({f"w{i}": 10 + (i < 50) for i in range(70)}) + Counter(w0=1, new=2)
    with restored(dsn, server) as copy:
        schema.check(copy)
        with psycopg.connect(copy, autocommit=True) as there:
            assert WC.verify(there) == []
            pending = one(there, "select pgcombine.backlog('wc')")
            assert pending == one(conn, "select pgcombine.backlog('wc')") == 702
            assert one(there, "select sum(backlog) from pgcombine.status") == pending
            add(there, {"w0": 1})
            WC.enqueue(there, [("w1", 1)])
            assert drain(copy, "wc", timeout=60).updates == pending + 2
            assert values(there) == expected + Counter(w0=1, w1=1)
            assert follow(audited(there)) == values(there)
            WC.rebucket(there, 3)
            assert WC.verify(there) == []
            WC.drop(there)


@embedded_only
def test_quarantined_keys_are_known_where_their_hash_is_another(
    conn: psycopg.Connection, dsn: str, server: Server
) -> None:
    """An enum's label is hashed by its number, and a restore gives it another one; or that of another label."""
    conn.execute("create type public.color as enum ('red', 'green', 'blue')")
    make_queue(conn, key=["c public.color", "day date"], buckets=1, quarantine_after=1)
    conn.execute("create table public.forbidden (c text)")
    conn.execute(
        """
        create function public.look(c public.color) returns void language plpgsql as $$
        begin
            if c::text in (select f.c from public.forbidden f) then raise 'no %', c; end if;
        end $$
        """
    )
    conn.execute("select pgcombine.add_observer('wc', 'look', 'select public.look(c) from changes')")
    conn.execute("insert into public.forbidden values ('red'), ('green')")
    update = "insert into pgcombine.wc_updates select c, '2026-01-01', 1 from unnest(%s::public.color[]) c"
    conn.execute(update, (["red", "red", "green", "blue"],))
    drain(dsn, "wc", timeout=60)
    held = {"red": 2, "green": 1}
    listed = "select key ->> 'c', updates from pgcombine.quarantine"
    assert dict(conn.execute(listed).fetchall()) == held
    conn.execute("truncate public.forbidden")
    numbers = "select array_agg(oid order by enumsortorder) from pg_enum where enumtypid = 'public.color'::regtype"
    with restored(dsn, server) as copy, psycopg.connect(copy, autocommit=True) as there:
        assert one(there, numbers) != one(conn, numbers)
        assert (WC.verify(there), dict(there.execute(listed).fetchall())) == ([], held)
        there.execute(update, (["red", "blue"],))
        assert [tuple(map(str, row)) for row in there.execute("select * from pgcombine.wc_current").fetchall()] == [
            ("blue", "2026-01-01", "2")
        ]
        combine_all(there)
        assert dict(there.execute(listed).fetchall()) == held | {"red": 3}
        shown = "select c::text, n from pgcombine.wc_values"
        assert there.execute(shown).fetchall() == [("blue", 2)]

        assert quarantine.retry(there, "wc", {"c": "red", "day": "2026-01-01"}) == 3
        combine_all(there)
        assert dict(there.execute(shown).fetchall()) == {"blue": 2, "red": 3}
        assert quarantine.drop(there, "wc", {"c": "green", "day": "2026-01-01"}) == 1
        assert quarantine.ls(there) == []
        there.execute(update, (["green"],))
        combine_all(there)
        assert dict(there.execute(shown).fetchall()) == {"blue": 2, "red": 3, "green": 1}
        assert one(there, "select count(*) from pgcombine.wc_quarantine") == 0


def test_what_is_quarantined_stays_so_in_an_upgrade(dsn: str) -> None:
    """By a version that knew keys by their hash; and after a restore, where it held one key under two hashes."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        make_queue(conn, buckets=1)
        conn.execute("create view public.mine as select word from pgcombine.wc_current")
        for word, updates in {"bad": 2, "worse": 3}.items():
            add(conn, [(word, 1)] * updates)
            hold(conn, attempts=7, error=word, word=word)
        schema.downgrade(dsn, "0010", force=True)
        held = "select key ->> 'word', updates, attempts, sqlstate, error from pgcombine.quarantined_key order by 1"
        expected = [("bad", 2, 7, "22003", "bad"), ("worse", 3, 7, "22003", "worse")]
        assert conn.execute(held).fetchall() == expected
        conn.execute(
            "insert into pgcombine.quarantined_key (queue, hash, key, updates, attempts, error)"
            """ values ('wc', 12345, '{"word": "bad"}', 1, 1, 'once more')"""
        )
        conn.execute("insert into pgcombine.wc_quarantine values (12345, 'bad', 1)")
        schema.upgrade(dsn)
        found = dict(conn.execute("select key ->> 'word', updates from pgcombine.quarantine").fetchall())
        assert found == {"bad": 3, "worse": 3}
        assert WC.verify(conn) == []
        add(conn, {"bad": 1, "good": 1})
        assert current(conn) == {"good": 1}
        combine_all(conn)
        assert values(conn) == {"good": 1}
        assert conn.execute("select * from public.mine").fetchall() == [("good",)]
        assert quarantine.retry(conn, "wc", {"word": "bad"}) == 4
        combine_all(conn)
        assert values(conn) == {"good": 1, "bad": 4}
