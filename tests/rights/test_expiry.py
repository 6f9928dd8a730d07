"""A role that removes a queue's expired keys needs the right ``work``."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors
from support.queues import make_queue, one, values, write_values
from support.roles import Login, as_role
from support.sessions import workers
from support.wait import eventually


def test_right_to_work_suffices_to_expire_keys(dsn: str, conn: psycopg.Connection, login: Login) -> None:
    make_queue(conn, delete_when=None)
    write_values(conn, "insert into pgcombine.wc_values values ('a', 0), ('b', 1)")
    conn.execute("select pgcombine.set_expiry('wc', 'n <= 0')")
    role = login()
    for statement in ("call pgcombine.expire('wc')", "select pgcombine.set_expiry('wc', null)"):
        with pytest.raises(errors.InsufficientPrivilege):
            role.execute(statement.encode())
    conn.execute("select pgcombine.grant_right('work', %s)", (role.info.user,))
    assert one(role, "call pgcombine.expire('wc')") == 1
    write_values(conn, "insert into pgcombine.wc_values values ('c', 0)")
    conn.execute("update pgcombine.expiry set due = '-infinity'")
    with workers(as_role(dsn, role.info.user), poll=0.1):
        eventually(lambda: values(conn) == {"b": 1})
