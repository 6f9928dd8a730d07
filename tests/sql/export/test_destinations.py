"""The state of destinations, attempts to deliver, their reports, and secrets in addresses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from support.queues import one
from support.states import raises_state

AT_ONCE = "backoff => '1 us', longest_backoff => '1 us'"


@contextmanager
def another(conn: psycopg.Connection) -> Iterator[psycopg.Connection]:
    with psycopg.connect(conn.info.dsn, password=conn.info.password, autocommit=True) as other:
        yield other


def state(conn: psycopg.Connection, name: str = "x") -> tuple[str, int]:
    row = conn.execute("select state, failures from pgcombine.destination where name = %s", (name,)).fetchone()
    assert row is not None
    return row


def add(conn: psycopg.Connection, options: str = AT_ONCE) -> None:
    conn.execute(f"select pgcombine_internal.add_destination('server', 'x', {options})")


def attempt(conn: psycopg.Connection) -> int | None:
    return one(conn, "select pgcombine_internal.try_destination('server', 'x')")


def failed(conn: psycopg.Connection, ticket: int | None = None) -> str:
    return one(conn, "select pgcombine_internal.report_destination('server', 'x', %s, 'refused')", ticket)


def delivered(conn: psycopg.Connection, ticket: int | None = None) -> str:
    return one(conn, "select pgcombine_internal.report_destination('server', 'x', %s)", ticket)


def test_destination_is_down_after_several_failures_and_up_after_a_success(conn: psycopg.Connection) -> None:
    add(conn, AT_ONCE + ", down_after => 3")
    seen = []
    for _ in range(4):
        ticket = attempt(conn)
        assert ticket is not None
        failed(conn, ticket)
        seen.append(state(conn))
    assert seen == [("suspect", 1), ("suspect", 2), ("down", 3), ("down", 4)]
    assert one(conn, "select reason from pgcombine.destination") == "refused"
    assert delivered(conn, attempt(conn)) == "up"
    assert state(conn) == ("up", 0)
    assert one(conn, "select reason from pgcombine.destination") is None


def test_back_off_doubles_up_to_its_bound(conn: psycopg.Connection) -> None:
    add(conn, "backoff => '10 s', longest_backoff => '1 min', down_after => 100")
    for expected in (10, 20, 40, 60, 60):
        failed(conn)
        wait = one(conn, "select extract(epoch from retry_at - last_failure)::float8 from pgcombine.destination")
        assert 0.74 * expected < wait < 1.26 * expected
    assert attempt(conn) is None


def test_failures_of_concurrent_attempts_count_once(conn: psycopg.Connection) -> None:
    add(conn)
    tickets = [attempt(conn) for _ in range(5)]
    for ticket in tickets:
        failed(conn, ticket)
    assert state(conn) == ("suspect", 1)
    assert delivered(conn, tickets[0]) == "suspect"  # the attempt began before the failure
    assert delivered(conn, attempt(conn)) == "up"


def test_one_deliverer_at_a_time_tries_again(conn: psycopg.Connection) -> None:
    add(conn)
    failed(conn)
    with another(conn) as rival:
        with rival.transaction():
            assert attempt(rival) is not None
            assert attempt(conn) is None  # doesn't wait for the rival's lock
        assert attempt(conn) is None
        assert attempt(rival) is None
    # From retry_at on, another deliverer may try, because the rival has reported nothing.
    conn.execute("update pgcombine.destination_state set retry_at = clock_timestamp()")
    ticket = attempt(conn)
    assert ticket is not None
    assert failed(conn, ticket - 1) == "suspect"  # as if the rival reported late
    assert state(conn) == ("suspect", 1)


def test_success_is_not_written_while_the_destination_is_up(conn: psycopg.Connection) -> None:
    add(conn)
    assert delivered(conn, attempt(conn)) == "up"
    before = one(conn, "select xmin::text from pgcombine.destination_state")
    for _ in range(3):
        delivered(conn, attempt(conn))
    assert one(conn, "select xmin::text from pgcombine.destination_state") == before
    assert one(conn, "select last_success from pgcombine.destination") is not None


def test_paused_destination_allows_no_attempt(conn: psycopg.Connection) -> None:
    add(conn)
    ticket = attempt(conn)
    conn.execute("select pgcombine_internal.pause_destination('server', 'x', 'other columns')")
    assert attempt(conn) is None
    assert delivered(conn, ticket) == "paused"
    assert failed(conn) == "paused"
    assert one(conn, "select reason from pgcombine.destination") == "other columns"
    conn.execute("select pgcombine_internal.resume_destination('server', 'x')")
    assert state(conn) == ("up", 0)
    assert attempt(conn) is not None


def test_adding_again_keeps_the_state(conn: psycopg.Connection) -> None:
    add(conn)
    failed(conn)
    add(conn, "down_after => 1")
    assert state(conn) == ("suspect", 1)
    # A destination of another kind may have the same name.
    conn.execute("select pgcombine_internal.add_destination('export', 'x')")
    assert one(conn, "select count(*) from pgcombine.destination") == 2


@pytest.mark.parametrize(
    ("call", "sqlstate"),
    [
        ("try_destination('server', 'nothing')", "PC020"),
        ("report_destination('server', 'nothing', 1, 'x')", "PC020"),
        ("report_destination('server', 'nothing')", "PC020"),
        ("pause_destination('server', 'nothing')", "PC020"),
        ("resume_destination('server', 'nothing')", "PC020"),
        ("add_destination('planet', 'x')", "23514"),
        ("add_destination('server', 'x', down_after => 0)", "23514"),
    ],
)
def test_invalid_calls_are_refused(auto: psycopg.Connection, call: str, sqlstate: str) -> None:
    with raises_state(sqlstate):
        auto.execute(f"select pgcombine_internal.{call}")


@pytest.mark.parametrize(
    ("target", "secret"),
    [
        ("host=a password=b", True),
        ("postgresql://me:b@host/db", True),
        ("postgresql://host/db?sslpassword=b", True),
        ("postgresql://host/db?pass%77ord=b", True),
        ("postgresql://host/db?%50%61ssword=b", True),
        ("postgresql://me:a?b@host/db", True),
        ("postgresql://me:a#b@host/db", True),
        ("postgresql://me:@host/db", True),
        ("host=a scram_client_key = b", True),
        ("host=a user=b passfile=/c", False),
        ("postgresql://me@host:5432/db", False),
        ("https://host/a:b@c", False),
    ],
)
def test_secret_in_an_address_is_recognized(auto: psycopg.Connection, target: str, secret: bool) -> None:
    assert one(auto, "select pgcombine_internal.holds_secret(%s)", target) is secret
