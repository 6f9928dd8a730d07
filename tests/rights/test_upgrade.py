"""Upgrades in a database where another role has created the schema or objects in it, or blocks the upgrade."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from support.queues import one
from support.roles import Login, as_role

from pgcombine import schema
from pgcombine.errors import SchemaError


@pytest.fixture
def dropped(dsn: str, conn: psycopg.Connection) -> str:
    """Returns the URI of a database without pgcombine's schemas."""
    conn.execute("drop schema pgcombine, pgcombine_internal cascade")
    return dsn


def test_schema_of_another_role_is_refused(dropped: str, conn: psycopg.Connection, login: Login) -> None:
    database = conn.info.dbname
    other = login(f"create on database {database}")
    other.execute("create schema pgcombine")
    owner = other.info.user
    with pytest.raises(SchemaError, match=owner):
        schema.upgrade(dropped)
    assert one(conn, "select count(*) from pg_class where relnamespace = 'pgcombine'::regnamespace") == 0
    member = login(owner)
    with pytest.raises(SchemaError):
        schema.upgrade(as_role(dropped, member.info.user))
    schema.upgrade(as_role(dropped, owner))
    with pytest.raises(SchemaError):
        schema.upgrade(dropped)
    with pytest.raises(SchemaError):
        schema.remove(dropped)
    with pytest.raises(SchemaError):
        schema.upgrade(as_role(dropped, login(f"create on database {database}").info.user))
    schema.upgrade(make_conninfo(as_role(dropped, member.info.user), options=f"-c role={owner}"))


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ("table pgcombine.queue (queue text)", "table pgcombine.queue in schema pgcombine"),
        (
            "function pgcombine.tick() returns void return null",
            "function pgcombine.tick() in schema pgcombine",
        ),
        ("type pgcombine.key as enum ('a')", "type pgcombine.key in schema pgcombine"),
        ("operator pgcombine.+ (rightarg = text, function = upper)", "operator pgcombine.+(NONE,text)"),
    ],
)
def test_objects_of_another_role_are_refused(
    dropped: str, conn: psycopg.Connection, login: Login, made: str, told: str
) -> None:
    conn.execute("create schema pgcombine")
    other = login("usage, create on schema pgcombine")
    other.execute(f"create {made}".encode())
    with pytest.raises(SchemaError) as refused:
        schema.upgrade(dropped)
    assert str(refused.value).startswith(told)
    assert f'belongs to the role "{other.info.user}"' in str(refused.value)
    conn.execute(sql.SQL("drop owned by {}").format(sql.Identifier(other.info.user)))
    schema.upgrade(dropped)


@pytest.mark.slow
def test_owner_may_upgrade_without_the_privilege_to_create_schemas(
    dropped: str, conn: psycopg.Connection, login: Login
) -> None:
    database = sql.Identifier(conn.info.dbname)
    owner = login(f"create on database {conn.info.dbname}").info.user
    schema.upgrade(as_role(dropped, owner))
    conn.execute(sql.SQL("revoke create on database {} from {}").format(database, sql.Identifier(owner)))
    assert schema.upgrade(as_role(dropped, owner)) == schema.head()


@pytest.mark.wc
@pytest.mark.slow
def test_blocked_upgrade_names_the_session(dsn: str, conn: psycopg.Connection, login: Login) -> None:
    """An advisory lock doesn't block an upgrade. An open write does, and the upgrade's error names the session."""
    writer = login("insert on pgcombine.wc_updates")
    with_lock_timeout = make_conninfo(dsn, options="-c lock_timeout=700ms")
    with writer.transaction():
        writer.execute("select pg_advisory_xact_lock(hashtext('pgcombine.schema'))")
        schema.upgrade(with_lock_timeout)
        writer.execute("insert into pgcombine.wc_updates values ('a', 1)")
        with pytest.raises(SchemaError) as refused:
            schema.upgrade(with_lock_timeout)
        assert f'locked by session {writer.info.backend_pid} (role "{writer.info.user}")' in str(refused.value)
        with pytest.raises(SchemaError, match=str(writer.info.backend_pid)):
            schema.remove(with_lock_timeout, force=True)
    schema.upgrade(with_lock_timeout)
