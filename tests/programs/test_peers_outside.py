"""The contenders from outside (PgQ, pgmq, pg_ivm, chDB), with which ``peers`` compares pgcombine, have exact totals.

Tests of contenders that aren't installed are skipped. The server is PostgreSQL 15 if that is installed, since PgQ's
package is for that version, or else PostgreSQL 18. ``PGCOMBINE_TEST_PGMQ`` is the path of pgmq's SQL file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from support.wait import eventually

from pgcombine.database.connect import connect, one
from pgcombine.errors import ConfigError

from .peers import server
from .peers.chdb import ChDB
from .peers.contender import Contender
from .peers.contenders import OUTSIDE
from .peers.ivm import Ivm
from .peers.load import Work
from .peers.pgmq import Pgmq
from .peers.pgq import PgQ
from .peers.turn import Base, base, database

pytestmark = pytest.mark.slow
SQL = [contender for contender in OUTSIDE if not isinstance(contender, ChDB)]
PGQ = [contender for contender in SQL if isinstance(contender, PgQ)]
CONSUMED = [contender for contender in SQL if not isinstance(contender, Ivm)]


@pytest.fixture(scope="module")
def copied() -> Iterator[Base]:
    try:
        version = server.find(15).version
    except ConfigError:
        version = 18
    with server.own(version) as dsn, base(dsn) as made:
        yield made


def installed(contender: Contender, copied: Base) -> Contender:
    """Return the contender, ready for use. Skips the test if the contender can't run here."""
    if isinstance(contender, Pgmq):
        file = os.environ.get("PGCOMBINE_TEST_PGMQ")
        if file is None:
            pytest.skip("pgmq: PGCOMBINE_TEST_PGMQ isn't set")
        contender = Pgmq(Path(file))
    with closing(connect(copied.dsn)) as connection:
        if why := contender.missing(connection):
            pytest.skip(f"{contender.name}: {why}")
    return contender


@pytest.mark.parametrize("contender", OUTSIDE, ids=lambda one: one.name)
def test_totals_are_exact_by_key(copied: Base, contender: Contender) -> None:
    contender = installed(contender, copied)
    with database(copied, contender) as turn:
        with turn.consumer():
            turn.warm(2)
            turn.next_window()
            for updates in (1, 10, 100):
                turn.load(Work(updates), clients=8, transactions=10)
                turn.next_window()
            turn.load(Work(50, "new"), clients=2, transactions=2)
            turn.load(Work(10), clients=8, seconds=1)
            turn.settle()
            assert turn.difference() is None
        assert turn.difference() is None
        assert turn.failed == 0
        assert sum(contender.totals(turn.connection).values()) > 2_000 + 80 * 111 + 200


@pytest.mark.parametrize("contender", SQL, ids=lambda one: one.name)
def test_late_commits_and_single_updates_count_once(copied: Base, contender: Contender) -> None:
    """An update counts once even if its transaction stays open for a time."""
    contender = installed(contender, copied)
    with database(copied, contender) as turn:
        with turn.consumer():
            with closing(connect(turn.dsn, name="open", autocommit=False)) as open_writer:
                contender.add(open_writer, "early")  # begins a transaction
                if not isinstance(contender, Ivm):  # with pg_ivm all other writers would wait for this one
                    turn.load(Work(10), clients=4, transactions=20)
                    contender.add(turn.connection, "late")
                    eventually(lambda: contender.read(turn.connection, "late") == 1)
                assert contender.read(turn.connection, "early") == 0
                open_writer.commit()
            if isinstance(contender, Ivm):
                contender.add(turn.connection, "late")
            turn.load(Work(1, "hot", 0.001), clients=4, transactions=5)
            turn.settle()
        assert contender.read(turn.connection, "early") == 1
        turn.ledger.enter_one("early")
        turn.ledger.enter_one("late")
        assert turn.difference() is None
        assert contender.size(turn.connection) > 0


@pytest.mark.parametrize("contender", CONSUMED, ids=lambda one: one.name)
def test_killed_consumer_loses_and_doubles_nothing(copied: Base, contender: Contender) -> None:
    """The consumer is killed in the middle of its transaction."""
    contender = installed(contender, copied)
    with database(copied, contender) as turn, ThreadPoolExecutor(1) as pool:
        with contender.consumer(turn.dsn) as process, closing(connect(turn.dsn, autocommit=False)) as blocker:
            assert process is not None
            writing = pool.submit(turn.load, Work(10), clients=8, seconds=2)
            # wait until the consumer has begun to work
            eventually(lambda: one(turn.connection, "select exists (select from bench.total)")[0])
            blocker.execute("lock table bench.total in share mode")
            waiting = "select pid from pg_locks where relation = 'bench.total'::regclass and not granted"
            eventually(lambda: turn.connection.execute(waiting).fetchone() is not None)
            process.kill()
            (pid,) = one(turn.connection, waiting)
            one(turn.connection, "select pg_terminate_backend(%s, 60000)", pid)
            blocker.rollback()
        writing.result()
        assert not contender.settled(turn.connection)
        assert turn.difference() is not None
        with turn.consumer():
            turn.settle()
        assert turn.difference() is None


@pytest.mark.parametrize("contender", PGQ, ids=lambda one: one.name)
def test_rotation_of_tables_loses_nothing(copied: Base, contender: Contender) -> None:
    contender = installed(contender, copied)
    with database(copied, contender) as turn:
        turn.connection.execute("select pgq.set_queue_config('bench', 'rotation_period', '0.1 s')")
        with turn.consumer():
            turn.load(Work(10), clients=8, seconds=2)
            turn.settle()
            eventually(lambda: one(turn.connection, "select count(*) from pgq.event_template")[0] == 0)
        assert turn.difference() is None
