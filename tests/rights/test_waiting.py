"""A role that may enqueue to a queue or read it may call ``wait``. With a right on some queue it may call ``tick``."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors
from support.queues import add, combine_all, make_queue, one
from support.roles import Login
from support.states import raises_state


@pytest.mark.parametrize(
    "grant",
    ["insert (word) on pgcombine.wc_updates", "select on pgcombine.wc_values", "select on pgcombine.wc_current"],
)
def test_any_right_on_the_queue_suffices_to_wait(conn: psycopg.Connection, login: Login, grant: str) -> None:
    make_queue(conn)
    add(conn, {"a": 1})
    role = login(grant)
    role.execute("select pgcombine_internal.tick()")
    with raises_state("PC006"):
        role.execute("call pgcombine.wait('wc', '10 ms')")
    combine_all(conn)
    role.execute("call pgcombine.wait('wc')")


def test_wait_needs_a_right_on_the_queue(conn: psycopg.Connection, login: Login) -> None:
    make_queue(conn)
    make_queue(conn, "own")
    role = login("insert on pgcombine.own_updates")
    for queue, state in (("wc", "42501"), ("none", "PC001")):
        with raises_state(state):
            role.execute("call pgcombine.wait(%s)", (queue,))
    role.execute("select pgcombine_internal.tick()")
    with pytest.raises(errors.InsufficientPrivilege):
        login().execute("select pgcombine_internal.tick()")


def test_reader_sees_the_lag_of_updates(conn: psycopg.Connection, login: Login) -> None:
    make_queue(conn, buckets=1)
    role = login("select on pgcombine.wc_updates, pgcombine.wc_updates_s0")
    add(conn, {"a": 1})
    role.execute("select pgcombine_internal.tick()")
    backlog, lag = role.execute("select * from pgcombine_internal.bucket_status('wc', 0)").fetchone() or ()
    assert (backlog, lag >= 0) == (1, True)
    assert one(role, "select count(*) from pgcombine.tick") == 1
