"""A role that may enqueue to a queue or read it may call ``wait``."""

from __future__ import annotations

import psycopg
import pytest
from support.queues import add, combine_all, make_queue
from support.roles import Login
from support.states import raises_state


@pytest.mark.wc
@pytest.mark.parametrize(
    "grant",
    ["insert (word) on pgcombine.wc_updates", "select on pgcombine.wc_values", "select on pgcombine.wc_current"],
)
def test_any_right_on_the_queue_suffices_to_wait(conn: psycopg.Connection, login: Login, grant: str) -> None:
    add(conn, {"a": 1})
    role = login(grant)
    with pytest.raises(psycopg.Error, match="still has pending updates from before the call"):
        role.execute("call pgcombine.wait('wc', '10 ms')")
    combine_all(conn)
    role.execute("call pgcombine.wait('wc')")


@pytest.mark.wc
def test_wait_needs_a_right_on_the_queue(conn: psycopg.Connection, login: Login) -> None:
    make_queue(conn, "own")
    role = login("insert on pgcombine.own_updates")
    for queue, state in (("wc", "42501"), ("none", "PC001")):
        with raises_state(state):
            role.execute("call pgcombine.wait(%s)", (queue,))
