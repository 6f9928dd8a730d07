"""When a worker's maintenance runs: in one loop at a time, and not most of the time."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from pgcombine.worker import maintenance, retention


class Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now


class Work(maintenance.Maintenance):
    """It takes the next of ``durations``, and meanwhile another loop asks."""

    rests = retention.Retain.rests

    def __init__(self, clock: Clock, connection: psycopg.Connection, durations: Iterator[float]) -> None:
        super().__init__(1.0)
        self.clock, self.durations, self.runs = clock, durations, 0

    def do(self, connection: psycopg.Connection) -> None:
        self.runs += 1
        self.clock.now += next(self.durations)
        self.look(connection)


def test_long_work_rests_as_long(monkeypatch: pytest.MonkeyPatch, conn: psycopg.Connection) -> None:
    clock = Clock()
    monkeypatch.setattr(maintenance, "time", clock)
    work = Work(clock, conn, iter((0.1, 10.0, 0.1)))
    seen = []
    for pause in (0.0, 0.9, 0.1, 9.9, 0.2, 0.9):
        clock.now += pause
        work.look(conn)
        seen.append(work.runs)
    assert seen == [1, 1, 2, 2, 3, 3]
