"""pgcombine.enqueue_once: the updates of a token count once. Also the rights on tokens, and their deletion."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import errors
from psycopg.types.json import Jsonb
from support.queues import combine_all, current, make_queue, one, values
from support.roles import Login, Roles
from support.sessions import in_background, waits
from support.states import raises_state

from pgcombine.queue.dropping import drop
from pgcombine.worker.passes import open_connection

ONCE = "select pgcombine.enqueue_once(%s, %s, %s)"


@pytest.fixture
def login(conn: psycopg.Connection, dsn: str) -> Iterator[Login]:
    with Roles(conn, dsn) as roles:
        yield roles.login


def once(conn: psycopg.Connection, token: str | None, n: int = 1, queue: str = "wc") -> bool:
    found = one(conn, ONCE, queue, token, Jsonb([{"word": "a", "n": n}]))
    assert isinstance(found, bool)
    return found


def age(conn: psycopg.Connection, token: str, interval: str) -> None:
    conn.execute("update pgcombine.token set at = now() - %s::interval where token = %s", (interval, token))


def trim(conn: psycopg.Connection, queue: str = "wc") -> int:
    return int(one(conn, "select pgcombine_internal.trim_tokens(%s)", queue))


def tokens(conn: psycopg.Connection) -> list[tuple[str, str]]:
    return conn.execute("select queue, token from pgcombine.token order by queue, token").fetchall()


@pytest.mark.wc
def test_a_token_counts_once(conn: psycopg.Connection) -> None:
    assert [once(conn, "evt_1"), once(conn, "evt_1"), once(conn, "evt_1", 100), once(conn, "evt_2", 10)] == [
        *(True, False, False, True)
    ]
    combine_all(conn)
    assert once(conn, "evt_1") is False, "after the pass"
    assert values(conn) == {"a": 11}


@pytest.mark.wc
def test_each_queue_has_its_own_tokens(conn: psycopg.Connection) -> None:
    make_queue(conn, "other")
    assert once(conn, "t")
    assert once(conn, "t", queue="other")
    assert (current(conn), current(conn, "other")) == ({"a": 1}, {"a": 1})


@pytest.mark.wc
def test_rolled_back_token_is_free(conn: psycopg.Connection) -> None:
    with conn.transaction(force_rollback=True):
        assert once(conn, "t")
        assert once(conn, "t") is False
    with conn.transaction():
        with conn.transaction(force_rollback=True):
            assert once(conn, "t")
        assert once(conn, "t", 10)
    assert once(conn, "t") is False
    assert current(conn) == {"a": 10}


@pytest.mark.wc
def test_refused_updates_leave_the_token_free(conn: psycopg.Connection) -> None:
    for updates in ([{"m": 1}], [{"n": 1}], 7):
        with raises_state("PC004"):
            conn.execute(ONCE, ("wc", "t", Jsonb(updates)))
    assert once(conn, "t")


@pytest.mark.wc
@pytest.mark.parametrize(
    "token",
    [
        None,
        "",
        "é" * 513,
    ],
)
def test_bad_tokens_are_refused(conn: psycopg.Connection, token: str | None) -> None:
    with raises_state("PC004") as refused:
        once(conn, token)
    assert "1 to 1024 bytes" in str(refused.value.diag.message_hint)


def test_longest_token_is_taken(tx: psycopg.Connection) -> None:
    make_queue(tx, "q" * 40)
    token = "".join(chr(33 + (i * i) % 90) for i in range(1024))
    assert [once(tx, token, queue="q" * 40), once(tx, token, queue="q" * 40)] == [True, False]


def test_unknown_queue_is_refused(tx: psycopg.Connection) -> None:
    with raises_state("PC001"):
        once(tx, "t", queue="none")


@pytest.mark.wc
@pytest.mark.parametrize("commits", [True, False])
def test_the_second_call_waits_for_the_outcome(conn: psycopg.Connection, dsn: str, commits: bool) -> None:
    with psycopg.connect(dsn) as first, psycopg.connect(dsn, autocommit=True) as second:
        once(first, "t")
        with in_background(lambda: once(second, "t", 10)) as (answer,):
            waits(conn, second.info.backend_pid)
            first.commit() if commits else first.rollback()
    assert answer.result() is not commits
    assert current(conn) == {"a": 1 if commits else 10}


@pytest.mark.wc
@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_token_after_the_snapshot_is_a_conflict(conn: psycopg.Connection, dsn: str, level: str) -> None:
    assert once(conn, "before")
    with psycopg.connect(dsn) as mine:
        mine.execute(f"set transaction isolation level {level}".encode())
        assert once(mine, "before") is False
        assert once(conn, "after")
        with pytest.raises(errors.SerializationFailure):
            once(mine, "after")
        mine.rollback()
        assert once(mine, "after") is False
    assert current(conn) == {"a": 2}


@pytest.mark.wc
@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_token_of_a_concurrent_call_is_a_conflict(conn: psycopg.Connection, dsn: str, level: str) -> None:
    with psycopg.connect(dsn) as first, psycopg.connect(dsn) as second:
        second.execute(f"set transaction isolation level {level}".encode())
        once(first, "t")
        with in_background(lambda: refused(second)):
            waits(conn, second.info.backend_pid)
            first.commit()
    assert current(conn) == {"a": 1}


def refused(conn: psycopg.Connection) -> None:
    with pytest.raises(errors.SerializationFailure):
        once(conn, "t")


@pytest.mark.wc
def test_the_right_to_enqueue_suffices(conn: psycopg.Connection, login: Login) -> None:
    mine, other = login(), login()
    for one_of in (mine, other):
        conn.execute("select pgcombine.grant_right('enqueue', %s, 'wc')", (one_of.info.user,))
    assert once(mine, "t")
    assert once(mine, "t") is False
    assert once(other, "t") is False, "the queue's tokens are shared"
    assert current(conn) == {"a": 1}


@pytest.mark.wc
def test_other_roles_neither_read_nor_write_tokens(conn: psycopg.Connection, login: Login) -> None:
    make_queue(conn, "other")
    once(conn, "secret")
    stranger, reader, writer = login(), login(), login()
    for right, role, queue in (("read", reader, "wc"), ("enqueue", writer, "other")):
        conn.execute("select pgcombine.grant_right(%s, %s, %s)", (right, role.info.user, queue))
    for session in (stranger, reader, writer):
        with pytest.raises(errors.InsufficientPrivilege, match='lacks the right enqueue on queue "wc"'):
            once(session, "t")
        for statement in (
            "select * from pgcombine.token",
            "update pgcombine.token set updates = 7",
            "insert into pgcombine.token (queue, role, token) values ('wc', '', 't')",
            "insert into pgcombine.token (queue, role, token) values ('wc', '', 'secret') on conflict do nothing",
            "insert into pgcombine.token (queue, role, token, at) values ('other', '', 't', '-infinity')",
            "delete from pgcombine.token",
            "update pgcombine.token set token = 'x'",
        ):
            with pytest.raises(errors.InsufficientPrivilege):
                session.execute(statement.encode())
    assert once(writer, "t", queue="other")
    assert tokens(conn) == [("other", "t"), ("wc", "secret")]


@pytest.mark.wc
def test_enqueue_once_runs_with_the_rights_of_its_caller(conn: psycopg.Connection, login: Login) -> None:
    """The caller may be a security definer function, whose own caller needs no right to enqueue."""
    owner, caller = login("create on schema public"), login()
    conn.execute("select pgcombine.grant_right('enqueue', %s, 'wc')", (owner.info.user,))
    owner.execute(
        "create function public.hook(token text) returns boolean language sql security definer set search_path = ''"
        """ as $$select pgcombine.enqueue_once('wc', token, '{"word": "a", "n": 1}')$$"""
    )
    assert [one(caller, "select public.hook('t')"), one(caller, "select public.hook('t')")] == [True, False]


@pytest.mark.wc
def test_dropped_queue_leaves_no_tokens(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, "other")
    once(conn, "t")
    once(conn, "t", queue="other")
    conn.execute("select pgcombine.drop_queue('wc', force => true)")
    assert tokens(conn) == [("other", "t")]
    make_queue(conn)
    with psycopg.connect(dsn) as mine:  # its snapshot won't see the token
        mine.execute("set transaction isolation level repeatable read")
        mine.execute("select 1")
        once(conn, "t")
        mine.execute("select pgcombine.drop_queue('wc', force => true)")
    make_queue(conn)
    assert once(conn, "t"), "a token of the earlier queue"


@pytest.mark.wc
def test_dropping_in_portions_leaves_no_tokens(conn: psycopg.Connection, dsn: str) -> None:
    once(conn, "t")
    with open_connection(dsn) as session:
        drop(session, "wc", force=True)
    assert tokens(conn) == []


@pytest.mark.wc
def test_rebucketed_queue_keeps_its_tokens(conn: psycopg.Connection) -> None:
    once(conn, "t")
    conn.execute("select pgcombine.rebucket('wc', 8)")
    assert once(conn, "t") is False
    assert current(conn) == {"a": 1}


@pytest.mark.wc
def test_old_tokens_are_deleted(conn: psycopg.Connection) -> None:
    make_queue(conn, "short", token_retention="1 hour")
    for queue in ("wc", "short"):
        for token in ("minutes", "days", "weeks"):
            once(conn, token, queue=queue)
    age(conn, "minutes", "50 min")
    age(conn, "days", "13 days 23 hours")
    age(conn, "weeks", "14 days 1 s")
    assert trim(conn, "short") == 2
    assert trim(conn) == 1
    assert trim(conn) == 0
    assert tokens(conn) == [("short", "minutes"), ("wc", "days"), ("wc", "minutes")]
    assert [once(conn, token) for token in ("minutes", "days", "weeks")] == [False, False, True]


@pytest.mark.wc
def test_a_call_deletes_a_portion(conn: psycopg.Connection) -> None:
    conn.execute(
        "insert into pgcombine.token (queue, role, token, at)"
        " select 'wc', '', i::text, now() - interval '15 days' from generate_series(1, 10001) i"
    )
    assert [trim(conn), trim(conn), trim(conn)] == [10000, 1, 0]


@pytest.mark.wc
def test_concurrent_trims_delete_different_tokens(conn: psycopg.Connection, dsn: str) -> None:
    once(conn, "t")
    age(conn, "t", "15 days")
    with psycopg.connect(dsn) as mine:
        assert trim(mine) == 1
        conn.execute("set lock_timeout = '1s'")
        assert trim(conn) == 0
        mine.rollback()
    assert trim(conn) == 1


@pytest.mark.wc
def test_only_roles_that_combine_delete_tokens(conn: psycopg.Connection, login: Login) -> None:
    make_queue(conn, "other")
    for queue in ("wc", "other"):
        once(conn, "t", queue=queue)
    age(conn, "t", "15 days")
    worker = login("insert on pgcombine.wc_updates")
    with pytest.raises(errors.InsufficientPrivilege):
        trim(worker)
    assert len(tokens(conn)) == 2
    conn.execute("select pgcombine.grant_right('work', %s)", (worker.info.user,))
    worker.execute("call pgcombine.reclaim()")
    assert tokens(conn) == []


@pytest.mark.parametrize("retention", [None, "0", "-1 day"])
def test_bad_retention_is_refused(tx: psycopg.Connection, retention: str | None) -> None:
    with raises_state("PC003"):
        make_queue(tx, token_retention=retention)


def test_policy_of_shared_tokens_is_checked_first(tx: psycopg.Connection) -> None:
    """PostgreSQL checks permissive policies in the reverse order of their names. The other policies call a function."""
    inserts = "select polname from pg_policy where polrelid = 'pgcombine.token'::regclass and polcmd = 'a' order by 1"
    assert tx.execute(inserts).fetchall()[-1] == ("shared",)
