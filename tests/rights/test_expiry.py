"""A role that removes a queue's expired keys needs the right ``work`` on that queue."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors
from support.queues import make_queue, one, values, write_values
from support.roles import Login, as_role
from support.sessions import workers
from support.wait import eventually


def test_right_to_work_suffices_to_expire_keys(dsn: str, conn: psycopg.Connection, login: Login) -> None:
    for queue in ("wc", "other"):
        make_queue(conn, queue, delete_when=None)
        write_values(conn, f"insert into pgcombine.{queue}_values values ('a', 0), ('b', 1)")  # noqa: S608
        conn.execute("select pgcombine.set_expiry(%s, 'n <= 0')", (queue,))
    role = login()
    for statement in ("call pgcombine.expire('wc')", "select pgcombine.set_expiry('wc', null)"):
        with pytest.raises(errors.InsufficientPrivilege):
            role.execute(statement.encode())
    conn.execute("select pgcombine.grant_right('work', %s, 'wc')", (role.info.user,))
    assert one(role, "call pgcombine.expire('wc')") == 1
    write_values(conn, "insert into pgcombine.wc_values values ('c', 0)")
    conn.execute("update pgcombine.expiry set due = '-infinity'")
    with workers(as_role(dsn, role.info.user), poll=0.1):
        eventually(lambda: values(conn) == {"b": 1})
    assert values(conn, "other") == {"a": 0, "b": 1}


def test_worker_cannot_schedule_expiry_of_another_queue(conn: psycopg.Connection, login: Login) -> None:
    for queue in ("wc", "other"):
        make_queue(conn, queue)
    conn.execute("insert into pgcombine.expiry (queue, bucket, page, due) values ('other', 0, 7, now())")
    role = login()
    conn.execute("select pgcombine.grant_right('work', %s, 'wc')", (role.info.user,))
    role.execute("select pgcombine_internal.schedule_expiry('wc', 0, 0, 0)")
    for statement in (
        "select pgcombine_internal.schedule_expiry('other', 0, 0, 0)",
        "select pgcombine_internal.schedule_expiry('other', 1, 0, 0)",
        "delete from pgcombine.expiry",
    ):
        with pytest.raises(errors.InsufficientPrivilege):
            role.execute(statement.encode())
    role.execute("update pgcombine.expiry set page = 9")
    assert one(conn, "select page from pgcombine.expiry where queue = 'other'") == 7
