"""Staged frames are enqueued in the caller's transaction together with other statements, or not at all."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from support.queues import combine_all, make_queue, one, values
from support.servers import embedded_only

from pgcombine.errors import ConfigError, LoadError
from pgcombine.spark import staged

from .frames import COPY_FIRST
from .test_sinks import COUNTED, frame, left

pytestmark = [pytest.mark.spark, embedded_only]


@pytest.fixture
def caller(dsn: str, conn: psycopg.Connection) -> Any:
    make_queue(conn)
    conn.execute("create table mine (n int)")
    with psycopg.connect(dsn) as connection:
        yield connection


@COPY_FIRST
@pytest.mark.parametrize("preaggregate", [False, True])
def test_updates_commit_with_the_callers_statements(
    spark: Any, dsn: str, conn: psycopg.Connection, caller: psycopg.Connection, sink: str, preaggregate: bool
) -> None:
    with staged(frame(spark), "wc", dsn, sink=sink, preaggregate=preaggregate) as rows:
        assert str(conninfo_to_dict(dsn)["password"]) not in repr(rows)
        outcome = rows.apply(caller)
        assert (outcome.updates, outcome.applied) == (5 if preaggregate else 6, True)
        caller.execute("insert into mine values (1)")
        assert (one(conn, "select pgcombine.backlog('wc')"), one(conn, "select count(*) from mine")) == (0, 0)
        caller.commit()
    combine_all(conn)
    assert (values(conn), one(conn, "select count(*) from mine"), left(conn)) == (COUNTED, 1, 0)


@COPY_FIRST
def test_rollback_includes_the_callers_statements(
    spark: Any, dsn: str, conn: psycopg.Connection, caller: psycopg.Connection, sink: str
) -> None:
    def fail() -> None:
        with staged(frame(spark), "wc", dsn, "r", sink=sink) as rows, caller.transaction():
            rows.apply(caller)
            caller.execute("select 1 / 0")

    with pytest.raises(psycopg.errors.DivisionByZero):
        fail()
    assert (one(conn, "select pgcombine.backlog('wc')"), left(conn)) == (0, 0)
    with staged(frame(spark), "wc", dsn, "r", sink=sink) as rows:  # the run wasn't applied, so it can be staged again
        assert rows.commit().applied
    combine_all(conn)
    assert values(conn) == COUNTED


@COPY_FIRST
def test_unused_staged_rows_are_removed(
    spark: Any, dsn: str, conn: psycopg.Connection, caller: psycopg.Connection, sink: str
) -> None:
    with staged(frame(spark), "wc", dsn, sink=sink) as rows:
        assert left(conn) == 2
    assert (one(conn, "select pgcombine.backlog('wc')"), left(conn)) == (0, 0)
    with pytest.raises(LoadError):
        rows.apply(caller)


@COPY_FIRST
def test_applied_run_is_reported(
    spark: Any, dsn: str, conn: psycopg.Connection, caller: psycopg.Connection, sink: str
) -> None:
    """A second load with the same run id learns that the run was applied before."""
    for applied in (True, False):
        with staged(frame(spark), "wc", dsn, "r", sink=sink) as rows, caller.transaction():
            outcome = rows.apply(caller)
            assert (outcome.updates, outcome.applied) == (6, applied)
            if outcome.applied:
                caller.execute("insert into mine values (1)")
    assert (one(conn, "select pgcombine.backlog('wc')"), one(conn, "select count(*) from mine")) == (6, 1)


def test_sqlalchemy_transaction_enqueues_staged_rows(
    spark: Any, dsn: str, conn: psycopg.Connection, caller: psycopg.Connection
) -> None:
    import sqlalchemy

    engine = sqlalchemy.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(dsn))
    with staged(frame(spark), "wc", dsn) as rows, engine.begin() as connection:
        assert rows.apply(connection).updates == 6
    engine.dispose()
    assert one(conn, "select pgcombine.backlog('wc')") == 6


def test_attempts_that_spark_did_not_report_do_not_count(
    spark: Any, dsn: str, conn: psycopg.Connection, caller: psycopg.Connection
) -> None:
    with staged(frame(spark), "wc", dsn) as rows:
        ((number,),) = conn.execute("select number from pgcombine.spark_load")
        late = sql.SQL("insert into {} values ('late', 1)")
        conn.execute(late.format(sql.Identifier("pgcombine", f"spark_stage_{number}")))
        rows.commit()
    combine_all(conn)
    assert values(conn) == COUNTED


def test_unknown_sink_is_refused(spark: Any, dsn: str) -> None:
    with (
        pytest.raises(ConfigError, match="odbc"),
        staged(frame(spark), "wc", dsn, sink="odbc"),
    ):
        pytest.fail("there is nothing to apply")
