"""``values_tables``: readers of single partitions get all values, or an error if a rebucket has moved them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import psycopg
import pytest
from psycopg import sql
from support.queues import add, combine_all, make_queue, one
from support.roles import Roles
from support.sessions import in_background, waits
from support.states import raises_state

WORDS = {f"w{i}": i for i in range(1, 1001)}
REBUCKETS = pytest.mark.parametrize("rebuckets", [(16,), (8,), (1,), (16, 4)], ids=str)
Part = tuple[str, str]
Read = Callable[[psycopg.Connection, Part], dict[str, int]]


@pytest.fixture
def filled(conn: psycopg.Connection) -> psycopg.Connection:
    make_queue(conn)
    add(conn, WORDS)
    combine_all(conn)
    return conn


def planned(conn: psycopg.Connection) -> list[Part]:
    return conn.execute("select relation, condition from pgcombine_internal.values_tables('wc')").fetchall()


def rebucket(conn: psycopg.Connection, numbers: Iterable[int]) -> None:
    for number in numbers:
        conn.execute("select pgcombine.rebucket('wc', %s)", (number,))


def reading(part: Part) -> sql.Composed:
    return sql.SQL("select word, n from {} where {}").format(*map(sql.SQL, part))


def by_table(conn: psycopg.Connection, part: Part) -> dict[str, int]:
    return dict(conn.execute(reading(part)).fetchall())


def refused(read: Read, conn: psycopg.Connection, part: Part) -> None:
    with raises_state("PC013") as error:
        read(conn, part)
    assert "read again" in str(error.value.diag.message_hint)


def by_predicate(conn: psycopg.Connection, part: Part) -> dict[str, int]:
    """Read one partition as Spark's JDBC reader does: from ``wc_values``, with a predicate for the partition."""
    statement = sql.SQL("select word, n from pgcombine.wc_values where tableoid = to_regclass({}) and {}")
    return dict(conn.execute(statement.format(part[0], sql.SQL(part[1]))).fetchall())


@pytest.mark.parametrize("read", [by_table, by_predicate])
def test_partitions_have_all_values(filled: psycopg.Connection, read: Read) -> None:
    parts = planned(filled)
    assert len(parts) == 4
    found = [item for part in parts for item in read(filled, part).items()]
    assert len(found) == len(WORDS)
    assert dict(found) == WORDS


@REBUCKETS
def test_every_read_notices_a_rebucket(filled: psycopg.Connection, rebuckets: tuple[int, ...]) -> None:
    parts = planned(filled)
    assert 0 < len(by_table(filled, parts[0])) < len(WORDS)
    rebucket(filled, rebuckets)
    for part in parts:
        refused(by_predicate, filled, part)
        if one(filled, "select to_regclass(%s) is not null", part[0]):
            refused(by_table, filled, part)
        else:
            with pytest.raises(psycopg.errors.UndefinedTable):
                by_table(filled, part)
    again = planned(filled)
    assert len(again) == rebuckets[-1]
    assert dict(item for part in again for item in by_table(filled, part).items()) == WORDS


@pytest.mark.wc
def test_a_read_of_an_empty_table_notices_a_rebucket(conn: psycopg.Connection) -> None:
    part, *_ = planned(conn)
    rebucket(conn, [16])
    refused(by_table, conn, part)


def test_a_read_that_begins_during_a_rebucket_notices_it(filled: psycopg.Connection, dsn: str) -> None:
    """The read waits for the rebucket's lock, and then finds a new table under the old name."""
    part = planned(filled)[0]
    with psycopg.connect(dsn) as other, psycopg.connect(dsn, autocommit=True) as reader:
        rebucket(other, [16])
        with in_background(lambda: refused(by_table, reader, part)):
            waits(filled, reader.info.backend_pid)
            other.commit()


def test_a_read_in_an_old_snapshot_notices_a_rebucket(filled: psycopg.Connection, dsn: str) -> None:
    """In a snapshot from before the rebucket, the new tables look empty."""
    part = planned(filled)[0]
    with psycopg.connect(dsn) as reader:
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        reader.execute("select")
        rebucket(filled, [16])
        refused(by_table, reader, part)


def test_a_prepared_read_notices_a_rebucket(filled: psycopg.Connection) -> None:
    part = planned(filled)[0]
    filled.execute("set plan_cache_mode = force_generic_plan")
    filled.execute(sql.SQL("prepare prepared as {}").format(reading(part)))
    assert dict(filled.execute("execute prepared").fetchall()) == by_table(filled, part)
    rebucket(filled, [16])
    with raises_state("PC013"):
        filled.execute("execute prepared")


@REBUCKETS
def test_a_reader_without_rights_on_partitions_gets_all_values(
    filled: psycopg.Connection, dsn: str, rebuckets: tuple[int, ...]
) -> None:
    """The plan of such a role reads wc_values by the hash of the key, which a rebucket doesn't change."""
    with Roles(filled, dsn) as roles:
        reader = roles.login("select on pgcombine.wc_values")
        parts = planned(reader)
        found = [*by_table(reader, parts[0]).items()]
        rebucket(filled, rebuckets)
        found += [item for part in parts[1:] for item in by_table(reader, part).items()]
    assert len(found) == len(WORDS)
    assert dict(found) == WORDS
