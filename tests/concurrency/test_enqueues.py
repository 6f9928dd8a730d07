"""Enqueues beside other enqueues, passes, ``create_queue`` and ``drop_queue``."""

from __future__ import annotations

import psycopg
import pytest
from support.queues import add, combine_all, make_queue, rows, values
from support.sessions import in_background, waits


def test_second_concurrent_creator_is_refused(conn: psycopg.Connection, dsn: str) -> None:
    with psycopg.connect(dsn) as first, psycopg.connect(dsn) as second:
        make_queue(first)

        def again() -> None:
            with pytest.raises(psycopg.Error, match='queue "wc" exists') as refused:
                make_queue(second)
            assert refused.value.sqlstate == "PC002"

        with in_background(again):
            waits(conn, second.info.backend_pid)
            first.commit()
    add(conn, {"a": 1})
    combine_all(conn)
    assert values(conn) == {"a": 1}


def test_second_creator_succeeds_if_the_first_rolls_back(conn: psycopg.Connection, dsn: str) -> None:
    with psycopg.connect(dsn) as first, psycopg.connect(dsn) as second:
        make_queue(first, buckets=7)
        with in_background(lambda: make_queue(second, buckets=2)):
            waits(conn, second.info.backend_pid)
            first.rollback()
        second.commit()
    assert [row[:2] for row in rows(conn, "bucket")] == [("wc", 0), ("wc", 1)]
