"""A trigger guards ``<queue>_values`` against users' ordinary writes."""

from __future__ import annotations

import psycopg
import pytest
from support.queues import add, combine_all, make_queue, one, values, write_values
from support.states import raises_state

from pgcombine.queue.combine_queue import CombineQueue

WC = CombineQueue("wc", key=["word text"], value=["n bigint sum"])
MISTAKES = [
    "insert into pgcombine.wc_values values ('b', 1)",
    "insert into pgcombine.wc_values values ('a', 1) on conflict (word) do update set n = 1",
    "update pgcombine.wc_values set n = 0",
    "update pgcombine.wc_values set n = 0 where word = 'a'",
    "delete from pgcombine.wc_values",
    "truncate pgcombine.wc_values",
    "copy pgcombine.wc_values from program 'echo a'",
    "merge into pgcombine.wc_values v using (values ('a')) s (word) on v.word = s.word when matched then delete",
]


@pytest.mark.wc
@pytest.mark.parametrize("statement", MISTAKES)
def test_write_of_the_owner_is_refused(conn: psycopg.Connection, statement: str) -> None:
    add(conn, {"a": 1})
    combine_all(conn)
    with raises_state("PC014") as refused:
        conn.execute(statement.encode())
    assert "enqueue the difference" in str(refused.value.diag.message_hint)
    assert values(conn) == {"a": 1}


@pytest.mark.wc
def test_load_may_write_only_in_its_transaction(conn: psycopg.Connection) -> None:
    make_queue(conn, "other")
    with conn.transaction():
        conn.execute("select pgcombine_internal.begin_initialize('wc')")
        with raises_state("PC014"), conn.transaction():
            conn.execute("insert into pgcombine.other_values values ('a', 1)")
        conn.execute("insert into pgcombine.wc_values values ('a', 1), ('gone', 0)")
        assert one(conn, "select pgcombine_internal.end_initialize('wc')") == 1
        with raises_state("PC014"), conn.transaction():
            conn.execute(MISTAKES[0].encode())
    with raises_state("PC014"):
        conn.execute(MISTAKES[0].encode())
    with conn.transaction(force_rollback=True):
        conn.execute("select pgcombine_internal.begin_initialize('wc', true)")
    with raises_state("PC014"):
        conn.execute(MISTAKES[0].encode())
    assert values(conn) == {"a": 1}


def test_writes_are_refused_after_a_failed_load(conn: psycopg.Connection) -> None:
    WC.create(conn)
    with conn.transaction():
        with pytest.raises(ZeroDivisionError):
            WC.initialize(conn, (("a", 1 // 0) for _ in range(1)))
        with raises_state("PC014"):
            conn.execute(MISTAKES[0].encode())


@pytest.mark.wc(buckets=2)
def test_writes_are_refused_after_a_rebucket(conn: psycopg.Connection) -> None:
    add(conn, {"a": 1})
    combine_all(conn)
    conn.execute("select pgcombine.rebucket('wc', 5)")
    with raises_state("PC014"):
        conn.execute("delete from pgcombine.wc_values")
    add(conn, {"a": 1})
    combine_all(conn)
    assert values(conn) == {"a": 2}


@pytest.mark.wc
def test_setting_allows_writes(conn: psycopg.Connection) -> None:
    """A user may set ``pgcombine.initialize_<queue>``, as ``initialize`` does, to repair values."""
    write_values(conn, "insert into pgcombine.wc_values values ('a', 1)")
    assert values(conn) == {"a": 1}
