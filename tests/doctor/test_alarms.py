"""The alarms after random histories: one for a queue with an update that is too old, none without a backlog.

A history is a random sequence of steps such as writes, passes and rebuckets. To let time pass, the test moves recorded
times into the past.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from support import run_cli
from support.queues import add, combine_all, make_queue, one, pass_time
from support.servers import embedded_only

from pgcombine.doctor import queues as checks
from pgcombine.doctor.examine import made
from pgcombine.doctor.findings import Context, Finding, Level, Limits
from pgcombine.web.verdict import BEHIND, state_of

QUEUES = {"wc": {"buckets": 2}, "shared": {"buckets": 4, "buckets_per_partition": 4}, "one": {"buckets": 1}}
KEPT = 10.0  # seconds: what the views show may be this old
TO_A_SECOND = 2.5  # tolerance in seconds: for rounding of recorded times, and the duration of a step


class History:
    """A database, the commit times of its pending updates, and the steps of a random history."""

    def __init__(self, conn: psycopg.Connection, dsn: str, rng: random.Random) -> None:
        self.conn, self.dsn, self.rng = conn, dsn, rng
        self.now = 0.0
        # for each queue and word the commit times of its pending updates
        self.pending: dict[str, dict[str, list[float]]] = {queue: {} for queue in QUEUES}
        # Queues whose pending rows may be stored out of order. The views then only estimate the age, from a sample.
        self.mixed: set[str] = set()
        for queue, layout in QUEUES.items():
            make_queue(conn, queue, delete_when=None, **layout)

    def write(self, queue: str) -> None:
        some = self.rng.choice([1, 3, 3000])
        start = self.rng.randrange(1000)
        words = [f"w{i}" for i in range(start, start + some)]
        add(self.conn, dict.fromkeys(words, 1), queue)
        self.committed(queue, words)

    def committed(self, queue: str, words: list[str]) -> None:
        for word in words:
            self.pending[queue].setdefault(word, []).append(self.now)

    def write_late(self, queue: str) -> None:
        """Insert a row, and commit it after later writes and passes. So rows aren't stored in the order of commits."""
        with psycopg.connect(self.dsn) as late:
            add(late, {"late": 1}, queue)
            self.write(queue)
            self.combine(queue)
            self.wait(queue)
        self.committed(queue, ["late"])

    def combine(self, queue: str) -> None:
        combine_all(self.conn, queue)
        self.pending[queue].clear()

    def combine_one(self, queue: str) -> None:
        self.conn.execute("select pgcombine.combine(%s)", (queue,))
        left = f"select word, count(*) from pgcombine.{queue}_pending group by word"  # noqa: S608
        self.pending[queue] = {
            word: self.pending[queue][word][-count:] for word, count in self.conn.execute(left).fetchall()
        }

    def wait(self, queue: str) -> None:
        seconds = self.rng.choice([1, 5, 9, 30, 90, 1200])
        pass_time(self.conn, seconds)
        self.now += seconds

    def forget(self, queue: str) -> None:
        """Lose the statistics, as a crash does."""
        self.conn.execute("select pg_stat_reset()")

    def analyze(self, queue: str) -> None:
        self.conn.execute(f"vacuum (analyze) pgcombine.{queue}_updates")
        self.mixed.add(queue)  # later rows fill the space that the vacuum has freed

    def rebucket(self, queue: str) -> None:
        self.conn.execute("select pgcombine.rebucket(%s, %s)", (queue, self.rng.choice([4, 8])))
        self.mixed.add(queue)  # rebucket copies the rows bucket by bucket

    def reclaim(self, queue: str) -> None:
        self.conn.execute("call pgcombine.reclaim(%s)", (queue,))

    def poll(self, queue: str) -> None:
        self.rows()

    def rows(self) -> dict[str, dict[str, Any]]:
        with self.conn.cursor(row_factory=dict_row) as cursor:
            return {row["queue"]: row for row in cursor.execute("select * from pgcombine.queue_stat").fetchall()}

    def age(self, queue: str) -> float:
        """The age of the oldest pending update; 0 if none is pending."""
        return self.now - min((times[0] for times in self.pending[queue].values()), default=self.now)


STEPS: list[Callable[[History, str], None]] = [
    *(
        History.write,
        History.write,
        History.write_late,
        History.combine,
        History.combine_one,
        History.wait,
        History.wait,
    ),
    *(History.forget, History.analyze, History.rebucket, History.reclaim, History.poll, History.poll),
]


def alarms(history: History, limit: float) -> dict[str, Finding]:
    """The doctor's warnings and errors about queues with updates older than ``limit`` seconds, by queue."""
    context = Context(history.conn, history.dsn, limits=Limits(lag=limit))
    found = made(checks.lag, context)
    return {finding.subject: finding for finding in found if finding.level in (Level.warning, Level.error)}


def check(history: History, told: list[str], *, command: bool = False) -> None:
    """Check the views, the doctor and the command: an update that is too old raises an alarm, an empty backlog none.

    What the views show may be out of date (see ``KEPT``). For queues in ``mixed`` the views only estimate the age.
    """
    exact = {queue: one(history.conn, "select pgcombine.backlog(%s)", queue) for queue in QUEUES}
    rows = history.rows()
    for queue, row in rows.items():
        age = history.age(queue)
        what = (queue, exact[queue], age, row["pending"], row["lag_seconds"], told)
        known = queue not in history.mixed
        if age > KEPT:
            assert not known or row["lag_seconds"] >= age - TO_A_SECOND, what
            assert row["pending"] > 0, what
        if exact[queue] == 0:
            assert row["lag_seconds"] <= KEPT + TO_A_SECOND, what
        if known and age > BEHIND + TO_A_SECOND:
            assert state_of(row) == "behind", what
        if exact[queue] == 0:
            assert state_of(row) != "behind", what
    for limit in (5.0, 60.0):
        found = alarms(history, limit)
        for queue in QUEUES:
            what = (queue, exact[queue], history.age(queue), found.get(queue), told)
            if history.age(queue) > limit + TO_A_SECOND:
                assert queue in found, what
            if exact[queue] == 0:
                assert queue not in found, what
    if command:
        late = max(history.age(queue) for queue in QUEUES)
        done = run_cli("status", "--max-lag", "5", "--dsn", history.dsn)
        if late > 5 + TO_A_SECOND:
            assert done.returncode == 1, (late, done.stdout, told)
        if not any(exact.values()):
            assert done.returncode == 0, (done.stderr, told)


@embedded_only
@pytest.mark.parametrize(("seed", "steps"), [(0, 25), pytest.param(1, 60, marks=pytest.mark.slow)])
def test_alarms_are_complete_and_true(conn: psycopg.Connection, dsn: str, seed: int, steps: int) -> None:
    rng = random.Random(seed)
    history = History(conn, dsn, rng)
    told: list[str] = []
    for number in range(steps):
        step, queue = rng.choice(STEPS), rng.choice(list(QUEUES))
        told.append(f"{step.__name__} {queue}")
        step(history, queue)
        if rng.random() < 0.5:
            check(history, told, command=number % 10 == 0)
    check(history, told, command=True)


def test_alarm_comes_for_an_update_after_the_last_poll(conn: psycopg.Connection, dsn: str) -> None:
    """The last poll came before the update, and the samples of the other queues are fresh."""
    for number in range(20):
        make_queue(conn, f"q{number}", buckets=1)
    assert run_cli("status", "--max-lag", "5", "--dsn", dsn).returncode == 0
    add(conn, {"a": 1}, "q13")
    pass_time(conn, 42)
    conn.execute("update pgcombine.sample set at = clock_timestamp() where queue <> 'q13'")
    done = run_cli("status", "--max-lag", "5", "--dsn", dsn)
    assert done.returncode == 1
    (lag,) = re.findall(r'the lag of queue "q13" is (\d+) s', done.stderr)
    assert int(lag) >= 42 - TO_A_SECOND


@pytest.mark.wc
def test_last_pass_ends_the_alarm(conn: psycopg.Connection, dsn: str) -> None:
    """The last poll found pending updates, before the last pass combined them."""
    add(conn, [(f"w{i}", 1) for i in range(314)])
    pass_time(conn, 100)
    with conn.cursor(row_factory=dict_row) as cursor:
        assert (cursor.execute("select * from pgcombine.queue_stat").fetchone() or {})["pending"] == 314
    combine_all(conn)
    pass_time(conn, 18 * 60)
    conn.execute("update pgcombine.sample set at = clock_timestamp() - interval '0.1 s'")
    conn.execute("update pgcombine.pass set ended = clock_timestamp() where updates > 0")
    found = made(checks.lag, Context(conn, dsn))
    assert list(found) == []
    assert run_cli("status", "--max-lag", "5", "--dsn", dsn).returncode == 0
    assert one(conn, "select lag_seconds from pgcombine.queue_stat") == 0
