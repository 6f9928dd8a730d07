"""An idle worker looks only at queues that may have work. ``QueueListener.queues`` returns them for each poll."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest
from support.queues import add, make_queue, one, values
from support.sessions import worker_listens, workers
from support.wait import eventually

from pgcombine.queue.callbacks import Change
from pgcombine.queue.combine_queue import CombineQueue
from pgcombine.runtime import wakeup
from pgcombine.runtime.wakeup import QueueListener

ASLEEP = threading.Event()


def polled(listener: QueueListener) -> set[str]:
    """Sleep for a short time, and return the queues that the last poll covers."""
    seen: list[set[str] | None] = []

    def may_work() -> bool:
        seen.append(listener.queues())
        return False

    listener.sleep(ASLEEP, may_work)
    seen.append(listener.queues())
    return set().union(*(names or set() for names in seen))


@pytest.fixture
def no_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Polls don't cover queues only because it is their turn."""
    monkeypatch.setattr(wakeup.Turns, "next", lambda self, names: [])


@pytest.fixture
def listener(dsn: str, conn: psycopg.Connection) -> Iterator[QueueListener]:
    for number in range(9):
        make_queue(conn, f"q{number}", buckets=1)
    with closing(psycopg.connect(dsn, autocommit=True)) as connection:
        yield QueueListener(connection, None, poll=0.01)


def test_idle_queues_take_turns(listener: QueueListener) -> None:
    names = {f"q{number}" for number in range(9)}
    assert listener.queues() is None
    assert polled(listener) == names, "the worker must poll after it has taken the idle locks"
    seen = [polled(listener) for _ in names]
    assert [len(some) for some in seen] == [1] * 9
    assert set().union(*seen) == names


@pytest.mark.usefixtures("no_turns")
def test_only_queues_that_may_have_work_are_polled(listener: QueueListener, conn: psycopg.Connection, dsn: str) -> None:
    polled(listener)
    assert polled(listener) == set()
    add(conn, {"a": 1}, "q2")
    assert polled(listener) == {"q2"}
    assert polled(listener) == set()
    listener.found_work_in(["q2", "q3"])
    assert listener.queues() == {"q2", "q3"}, "without the idle lock, writers don't notify"
    assert polled(listener) == {"q2", "q3"}
    conn.execute("select pgcombine.rebucket('q4', 2)")
    assert polled(listener) == {"q4"}
    make_queue(conn, "silent", notify=False)
    assert polled(listener) == polled(listener) == {"silent"}
    conn.execute("select pgcombine.drop_queue('silent')")
    polled(listener)
    with psycopg.connect(dsn) as writer:
        listener.found_work_in(["q5"])
        add(writer, {"a": 1}, "q5")
        assert polled(listener) == polled(listener) == {"q5"}, "an open transaction won't notify"
        writer.commit()
    assert polled(listener) == {"q5"}
    assert polled(listener) == set()


@pytest.mark.usefixtures("no_turns")
def test_a_second_worker_looks_at_nothing_while_the_first_holds_the_locks(
    listener: QueueListener, conn: psycopg.Connection, dsn: str
) -> None:
    polled(listener)
    with closing(psycopg.connect(dsn, autocommit=True)) as connection:
        second = QueueListener(connection, ["q1", "q2"], poll=0.01)
        assert polled(second) == {"q1", "q2"}, "updates may have come before the first worker took the locks"
        assert polled(second) == set()
        add(conn, {"a": 1}, "q2")
        assert polled(second) == polled(listener) == {"q2"}
        with closing(psycopg.connect(dsn, autocommit=True)) as stranger:
            lock = "select pg_advisory_lock(hashtext('pgcombine.listener'), 'pgcombine.q1_updates'::regclass::integer)"
            listener.found_work_in(["q1"])
            one(stranger, lock)
            assert polled(second) == polled(second) == {"q1"}, "nobody holds the idle lock"
        polled(second)
        listener._connection.close()
        eventually(lambda: polled(second) >= {"q2"}, what="the second worker takes the lock, and polls")
        assert worker_listens(conn, "q2")


@pytest.mark.usefixtures("no_turns")
def test_a_worker_leaves_the_idle_lock_of_a_queue_that_it_refuses(conn: psycopg.Connection, dsn: str) -> None:
    """Another worker may be able to combine the updates, and must notice those that come without a notification."""
    queue = CombineQueue("wc", key=["word text"], value=["n bigint sum"])
    told: list[Change] = []
    queue.on_change(lambda tx, changes: told.extend(changes), name="tell")
    queue.create(conn)
    with workers(dsn, poll=0.05):
        add(conn, {"a": 1})
        with workers(dsn, queue, poll=3600) as able:
            eventually(lambda: values(conn) == {"a": 1}, what="the able worker combines")
            for n in range(2, 9):
                add(conn, {"a": 1})
                eventually(lambda n=n: able.totals.updates == n, what="the able worker is woken")
    assert len(told) == 8


@pytest.mark.usefixtures("no_turns")
def test_worker_comes_back_to_a_bucket_that_another_session_had(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, buckets=1)
    last_poll = "select max(query_start) from pg_stat_activity where starts_with(application_name, 'pgcombine worker ')"
    polls: set[object] = set()
    with psycopg.connect(dsn) as blocker, workers(dsn, poll=0.05):
        eventually(lambda: worker_listens(conn), what="the worker listens")
        blocker.execute("select from pgcombine.bucket where queue = 'wc' for update")
        add(conn, {"a": 1})
        eventually(lambda: len(polls) > 20 or polls.add(one(conn, last_poll)), what="the worker has tried and slept")
        assert values(conn) == {}
        blocker.rollback()
        eventually(lambda: values(conn) == {"a": 1}, what="the update is combined")
