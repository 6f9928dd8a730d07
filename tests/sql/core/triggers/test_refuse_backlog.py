"""``max_backlog``: a worker notes that a queue is full, and the trigger refuses updates until the note goes."""

from __future__ import annotations

import psycopg
from support.queues import add, combine_all, make_queue, one
from support.roles import Roles
from support.sessions import workers
from support.states import raises_state
from support.wait import eventually

FULL = "select is_full from pgcombine.queue where queue = 'wc'"


def words(number: int) -> list[tuple[str, int]]:
    return [(f"w{i}", 1) for i in range(number)]


def test_full_queue_refuses_updates_until_passes_have_caught_up(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, max_backlog=1000)
    make_queue(conn, "other", max_backlog=1001)
    insert = "insert into pgcombine.wc_updates (word, n) values ('more', 1)"
    with Roles(conn, dsn) as roles:
        writer = roles.login("insert on pgcombine.wc_updates", "create on schema public")
        # operators on a writer's search path don't hide the note
        writer.execute(
            "create function public.never(text, text) returns boolean language sql as 'select false';"
            "create operator public.= (leftarg = text, rightarg = text, function = public.never);"
            "set search_path = public, pg_catalog"
        )
        for queue in ("wc", "other"):
            add(conn, words(999), queue)
        conn.execute("select pgcombine_internal.check_backlog()")
        assert one(conn, FULL) is False
        for queue in ("wc", "other"):
            add(conn, {"last": 1}, queue)
        conn.execute("select pgcombine_internal.check_backlog()")
        assert one(conn, FULL) is True
        add(conn, {"more": 1}, "other")
        for refused in (insert, "select pgcombine.enqueue('wc', '{\"word\": \"more\"}')"):
            with raises_state("PC010", "wc", 1000):
                conn.execute(refused.encode())
        with raises_state("PC010"):
            writer.execute(insert.encode())
        assert one(conn, "select pgcombine.backlog('wc')") == 1000
        combine_all(conn)
        conn.execute("select pgcombine_internal.check_backlog('wc')")
        writer.execute(insert.encode())


def test_a_locked_queue_keeps_no_other_one_from_a_note(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, "a", max_backlog=1)
    make_queue(conn, max_backlog=1)
    add(conn, {"a": 1})
    with psycopg.connect(dsn) as other:
        other.execute("lock table pgcombine.a_updates in access exclusive mode")
        conn.execute("select pgcombine_internal.check_backlog()")
    assert one(conn, FULL) is True


def test_workers_and_drain_note_whether_a_queue_is_full(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, max_backlog=10)
    conn.execute("select pgcombine.pause('wc')")
    add(conn, words(10))
    with workers(dsn, "wc", poll=0.02):
        eventually(lambda: one(conn, FULL), what="the worker notes that the queue is full")
        with raises_state("PC010"):
            add(conn, {"more": 1})
        conn.execute("select pgcombine.resume('wc')")
        eventually(lambda: not one(conn, FULL), what="the worker notes that the queue isn't full")
    conn.execute("update pgcombine.queue set is_full = true")
    conn.execute("call pgcombine.drain('wc')")
    add(conn, {"more": 1})
