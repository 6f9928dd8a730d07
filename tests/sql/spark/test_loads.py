"""The SQL functions of Spark's loads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import sql
from support.queues import combine_all, make_queue, one, values
from support.states import raises_state

Rows = Sequence[tuple[str, int]]


@pytest.fixture
def other(dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(dsn, autocommit=True) as conn:
        yield conn


def begin(conn: psycopg.Connection, load: UUID, run: str = "r", kind: str = "stage", queue: str = "wc") -> str:
    return one(conn, "select pgcombine_internal.begin_load(%s, %s, %s, %s)", load, queue, run, kind)


def stage(conn: psycopg.Connection, table: str, rows: Rows, part: int | None = None) -> str:
    """Stage the rows of one attempt at a Spark partition, and return the attempt's transaction id."""
    with conn.transaction():
        for word, n in rows:
            insert = sql.SQL("insert into {} (word, n, pgcombine_part) values (%s, %s, %s)")
            conn.execute(insert.format(sql.Identifier("pgcombine", table)), (word, n, part))
        return str(one(conn, "select pg_current_xact_id()"))


def end(
    conn: psycopg.Connection,
    load: UUID,
    run: str = "r",
    attempts: list[str] | None = None,
    expected: int | None = None,
    fold: bool = False,
    queue: str = "wc",
) -> tuple[int, bool]:
    row = conn.execute(
        "select * from pgcombine_internal.end_load(%s, %s, %s, %s::text[]::xid8[], %s, %s)",
        (load, queue, run, attempts, expected, fold),
    ).fetchone()
    assert row is not None
    return row


def left(conn: psycopg.Connection) -> int:
    """The number of staging tables plus the number of rows in the tables spark_load and spark_alive."""
    return one(
        conn,
        r"select (select count(*) from pg_class where relname ~ '^spark_stage_\d+$')"
        " + (select count(*) from pgcombine.spark_load) + (select count(*) from pgcombine.spark_alive)",
    )


def backlog(conn: psycopg.Connection) -> int:
    return one(conn, "select pgcombine.backlog('wc')")


@pytest.mark.wc
def test_named_attempts_count(conn: psycopg.Connection) -> None:
    load = uuid4()
    table = begin(conn, load)
    assert begin(conn, load) == table
    first = stage(conn, table, [("a", 1), ("b", 2)])
    stage(conn, table, [("a", 1), ("b", 2)])  # an attempt that doesn't count
    second = stage(conn, table, [("a", 5)])
    assert backlog(conn) == 0
    assert end(conn, load, attempts=[first, second], expected=3) == (3, True)
    assert left(conn) == 0
    combine_all(conn)
    assert values(conn) == {"a": 6, "b": 2}


@pytest.mark.wc
def test_first_attempt_at_a_part_counts(conn: psycopg.Connection) -> None:
    load = uuid4()
    table = begin(conn, load)
    for part, rows in ((0, [("a", 1), ("b", 2)]), (1, [("a", 5)]), (0, [("a", 1), ("b", 2)]), (1, [("a", 5)])):
        stage(conn, table, rows, part)
    assert end(conn, load) == (3, True)
    combine_all(conn)
    assert values(conn) == {"a": 6, "b": 2}


@pytest.mark.wc
def test_prepared_load_ends_in_the_callers_transaction(conn: psycopg.Connection, other: psycopg.Connection) -> None:
    """The updates commit or roll back with the transaction that calls end_load."""
    prepare = "select pgcombine_internal.prepare_load(%s, %s::text[]::xid8[], %s)"
    for end_it in (False, True):
        load = uuid4()
        table = begin(conn, load)
        attempts = [stage(conn, table, [("a", 1), ("b", 2)]), stage(conn, table, [("a", 5)])]
        stage(conn, table, [("late", 1)])
        conn.execute(prepare, (load, attempts, 3))
        with conn.transaction(force_rollback=not end_it):
            assert end(conn, load) == (3, True)
            assert backlog(other) == 0
        assert backlog(other) == (3 if end_it else 0)
    with raises_state("PC030"):
        conn.execute(prepare, (load, attempts, 3))
    combine_all(conn)
    assert values(conn) == {"a": 6, "b": 2}


@pytest.mark.wc
def test_prepared_rows_that_are_lost_are_noticed(conn: psycopg.Connection) -> None:
    load = uuid4()
    attempts = [stage(conn, begin(conn, load), [("a", 1)])]
    conn.execute("select pgcombine_internal.prepare_load(%s, %s::text[]::xid8[], 2)", (load, attempts))
    with raises_state("PC031"):
        end(conn, load)


@pytest.mark.wc
def test_run_counts_once(conn: psycopg.Connection) -> None:
    one_load, two = uuid4(), uuid4()
    attempts = [stage(conn, begin(conn, load), [("a", 1)]) for load in (one_load, two)]
    assert end(conn, one_load, attempts=attempts[:1], expected=1) == (1, True)
    # The driver repeats the call, as if the answer had been lost.
    assert end(conn, one_load, attempts=attempts[:1], expected=1) == (1, False)
    assert end(conn, two, attempts=attempts[1:], expected=1) == (1, False)
    assert begin(conn, uuid4()) is None
    assert left(conn) == 0
    assert begin(conn, uuid4(), "another") is not None
    combine_all(conn)
    assert values(conn) == {"a": 1}


def test_queues_may_have_equal_run_ids(conn: psycopg.Connection) -> None:
    for queue in ("wc", "other"):
        make_queue(conn, queue)
        load = uuid4()
        stage(conn, begin(conn, load, queue=queue), [("a", 1)], 0)
        assert end(conn, load, queue=queue) == (1, True)


@pytest.mark.wc
def test_one_of_two_loads_of_a_run_counts(conn: psycopg.Connection, other: psycopg.Connection) -> None:
    loads = [uuid4(), uuid4()]
    for load in loads:
        stage(conn, begin(conn, load), [("a", 1)], 0)
    other.execute("set lock_timeout = '50ms'")
    with conn.transaction():
        assert end(conn, loads[0]) == (1, True)
        with pytest.raises(psycopg.errors.LockNotAvailable):
            end(other, loads[1])
    assert end(other, loads[1]) == (1, False)
    assert (backlog(conn), left(conn)) == (1, 0)


@pytest.mark.wc
def test_earlier_batches_of_a_stream_are_ignored(conn: psycopg.Connection) -> None:
    for batch, applied in ((0, True), (1, True), (1, False), (0, False), (2, True)):
        load = uuid4()
        run = f"stream:{'q' * 36}:{batch}"
        table = begin(conn, load, run)
        assert (table is not None) == applied
        if table:
            stage(conn, table, [("a", 1)], 0)
            assert end(conn, load, run) == (1, True)
    assert begin(conn, uuid4(), "stream:another:0") is not None
    assert backlog(conn) == 3


@pytest.mark.wc
def test_old_runs_are_forgotten_but_not_the_last_of_a_stream(conn: psycopg.Connection) -> None:
    for run in ("r", "stream:q:0", "stream:q:1", "stream:p:7"):
        load = uuid4()
        stage(conn, begin(conn, load, run), [("a", 1)], 0)
        end(conn, load, run)
    assert conn.execute("select * from pgcombine_internal.clean_loads()").fetchone() == (0, 0)
    assert conn.execute("select * from pgcombine_internal.clean_loads(runs_older_than => '0 s')").fetchone() == (0, 2)
    assert begin(conn, uuid4(), "stream:q:0") is None
    assert begin(conn, uuid4(), "stream:p:7") is None
    assert begin(conn, uuid4(), "r") is not None


@pytest.mark.wc
def test_lost_rows_are_noticed(conn: psycopg.Connection) -> None:
    load = uuid4()
    attempt = stage(conn, begin(conn, load), [("a", 1)])
    for fold in (False, True):
        with raises_state("PC031"):
            end(conn, load, attempts=[attempt], expected=2, fold=fold)
    assert backlog(conn) == 0
    assert end(conn, load, attempts=[attempt], expected=1) == (1, True)


@pytest.mark.wc
def test_abandoned_load_is_refused_but_an_applied_one_stays(conn: psycopg.Connection) -> None:
    load = uuid4()
    stage(conn, begin(conn, load), [("a", 1)], 0)
    assert one(conn, "select pgcombine_internal.give_up_load(%s)", load) is True
    with raises_state("PC030"):
        end(conn, load)
    load = uuid4()
    stage(conn, begin(conn, load), [("a", 1)], 0)
    assert end(conn, load) == (1, True)
    assert one(conn, "select pgcombine_internal.give_up_load(%s)", load) is True
    assert (backlog(conn), left(conn)) == (1, 0)


@pytest.mark.wc
def test_stage_that_is_written_is_dropped_later(conn: psycopg.Connection, other: psycopg.Connection) -> None:
    load = uuid4()
    table = begin(conn, load)
    stage(conn, table, [("a", 1)], 0)
    with other.transaction():
        other.execute(
            sql.SQL("insert into {} (word, pgcombine_part) values ('a', 0)").format(sql.Identifier("pgcombine", table))
        )
        assert end(conn, load) == (1, True)
        assert left(conn) > 0
        assert one(conn, "select loads from pgcombine_internal.clean_loads()") == 0
    with raises_state("PC030"):
        begin(conn, load, "r2")
    assert one(conn, "select loads from pgcombine_internal.clean_loads()") == 1
    assert (backlog(conn), left(conn)) == (1, 0)


@pytest.mark.wc
def test_clean_up_keeps_active_loads(conn: psycopg.Connection, other: psycopg.Connection) -> None:
    held, fresh, orphan = uuid4(), uuid4(), uuid4()
    for load in (held, fresh, orphan):
        stage(conn, begin(conn, load, str(load)), [("a", 1)], 0)
    conn.execute("update pgcombine.spark_load set seen_at = now() - interval '2 days' where load <> %s", (fresh,))
    with other.transaction():
        other.execute("select pgcombine_internal.hold_load(%s)", (held,))
        assert one(conn, "select loads from pgcombine_internal.clean_loads()") == 1
        assert end(other, held, str(held)) == (1, True)
    assert end(conn, fresh, str(fresh)) == (1, True)
    with raises_state("PC030"):
        end(conn, orphan, str(orphan))
    assert left(conn) == 0


@pytest.mark.wc
def test_begun_load_is_not_cleaned_up(conn: psycopg.Connection) -> None:
    load = uuid4()
    table = begin(conn, load)
    conn.execute("update pgcombine.spark_load set seen_at = now() - interval '2 days'")
    assert begin(conn, load) == table
    assert one(conn, "select loads from pgcombine_internal.clean_loads()") == 0


@pytest.mark.wc
def test_stage_of_a_dropped_queue_is_removed(conn: psycopg.Connection) -> None:
    begin(conn, uuid4())
    conn.execute("select pgcombine.drop_queue('wc')")
    assert one(conn, "select loads from pgcombine_internal.clean_loads()") == 1
    assert left(conn) == 0


@pytest.mark.parametrize("kind", ["stage", "values"])
def test_fold_uses_the_queues_combiners(conn: psycopg.Connection, kind: str) -> None:
    make_queue(
        conn,
        value=["n bigint sum", "most int max", "at timestamptz max", "what text last(at)", "tags text[] array_union"],
        delete_when=None,
    )
    load = uuid4()
    table = begin(conn, load, kind=kind)
    with conn.transaction():
        conn.execute(
            sql.SQL(
                "insert into {} (word, n, most, at, what, tags, pgcombine_part) select 'w' || i % 7, i, i, "
                "'2024-01-01'::timestamptz + i * interval '1 s', 'v' || i, array['t' || i % 3], 0 "
                "from generate_series(1, 100) i"
            ).format(sql.Identifier("pgcombine", table))
        )
    expected = conn.execute(
        "select 'w' || i % 7, sum(i), max(i), 'v' || max(i) from generate_series(1, 100) i group by 1 order by 1"
    ).fetchall()
    assert end(conn, load, expected=100, fold=True) == (7, True)
    combine_all(conn)
    rows = conn.execute("select word, n, most, what, tags from pgcombine.wc_values order by word").fetchall()
    assert [row[:4] for row in rows] == expected
    assert {tuple(row[4]) for row in rows} == {("t0", "t1", "t2")}


@pytest.mark.wc
def test_values_are_loaded_into_an_truncate_queue_only(conn: psycopg.Connection) -> None:
    load = uuid4()
    stage(conn, begin(conn, load, kind="values"), [("a", 1), ("b", 0)], 0)
    assert end(conn, load) == (1, True)
    assert values(conn) == {"a": 1}
    load = uuid4()
    stage(conn, begin(conn, load, "again", "values"), [("c", 1)], 0)
    with raises_state("PC005"):
        end(conn, load, "again")


@pytest.mark.wc
def test_invalid_load_is_refused_before_it_begins(conn: psycopg.Connection) -> None:
    for arguments, state in ((("r", "other"), "PC003"), (("", "stage"), "PC003"), (("r", "stage", "none"), "PC001")):
        with raises_state(state):
            begin(conn, uuid4(), *arguments)
    assert left(conn) == 0


@pytest.mark.wc
def test_load_needs_the_right_to_work(conn: psycopg.Connection) -> None:
    role = f"loader_{uuid4().hex[:8]}"
    conn.execute(sql.SQL("create role {}").format(sql.Identifier(role)))
    try:
        conn.execute(sql.SQL("set role {}").format(sql.Identifier(role)))
        load = uuid4()
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match=str(role)):
            begin(conn, load)
        conn.execute("reset role")
        theirs = uuid4()
        stage(conn, begin(conn, theirs, "theirs"), [("a", 1)], 0)
        conn.execute(sql.SQL("set role {}").format(sql.Identifier(role)))
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            end(conn, theirs, "theirs")
        conn.execute("reset role")
        conn.execute("select pgcombine.grant_right('work', %s)", (role,))
        conn.execute(sql.SQL("set role {}").format(sql.Identifier(role)))
        stage(conn, begin(conn, load), [("a", 1)], 0)
        assert end(conn, load) == (1, True)
    finally:
        conn.execute("reset role")
        conn.execute(sql.SQL("drop owned by {0}; drop role {0}").format(sql.Identifier(role)))
