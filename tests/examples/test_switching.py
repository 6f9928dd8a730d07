"""The steps of the page *Switch from what you have* lose no count and count nothing twice."""

from __future__ import annotations

import random
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
import pytest
from support.orm import django_on
from support.queues import combine_all, one, values
from support.readme import PAGES, fences, statements
from support.servers import embedded_only
from support.sessions import in_background, workers
from support.wait import eventually

(PAGE,) = (page for page in PAGES if page.name == "switching.md")
BLOCKS = [[statement for statement, _ in statements(block)] for block in fences(PAGE, "sql")]
TRIGGER, ROLLUP, COMPARE, READ, DROP, SLOTS, (QUEUE, READ_BOTH), (APPEND, MOVE), READ_QUEUE, REDIS = BLOCKS
KEYS, WRITERS = 3, 4

Step = Callable[[psycopg.Connection, Counter[int]], None]


class Load:
    """Writers that repeat their steps in ``writes``, and a reader that repeats ``look``, during ``running``."""

    def __init__(self, dsn: str, write: Step, look: Callable[[psycopg.Connection], None]) -> None:
        self._dsn = dsn
        self.writes = [write] * WRITERS
        self.look = look
        self.counted = [Counter[int]() for _ in range(WRITERS)]
        self._steps = Counter[int]()
        self._ended = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        with in_background(*(lambda number=number: self._repeat(number) for number in range(WRITERS + 1))):
            try:
                yield
            finally:
                self._ended.set()

    def _repeat(self, number: int) -> None:
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            while not self._ended.is_set():
                if number < WRITERS:
                    self.writes[number](connection, self.counted[number])
                else:
                    self.look(connection)
                self._steps[number] += 1

    def go_on(self) -> None:
        """Return when reader and writers have done eleven more steps each. The first may have begun before the call."""
        before = Counter(self._steps)
        eventually(lambda: all(self._steps[n] >= before[n] + 11 for n in range(WRITERS + 1)), what=f"{before}")

    @property
    def totals(self) -> dict[int, int]:
        found = Counter[int]()
        for counted in self.counted:
            found.update(counted)  # + would leave out negative counts
        return dict(found)


def at(statement: str, key: int) -> bytes:
    """A statement of the page, with ``key`` in place of its key 1."""
    return re.sub(r"((?:id|post|page) = |values \()1\b", rf"\g<1>{key}", statement).encode()


def run(conn: psycopg.Connection, block: list[str]) -> None:
    for statement in block:
        conn.execute(statement.encode())


def counting(statement: str) -> Step:
    """A step that runs the statement for a random key, and counts it."""

    def step(connection: psycopg.Connection, counted: Counter[int]) -> None:
        key = random.randint(1, KEYS)
        connection.execute(at(statement, key))
        counted[key] += 1

    return step


def growing(statement: str, seen: list[int]) -> Callable[[psycopg.Connection], None]:
    """A look that checks that the last column of the statement's row never decreases, whichever statement reads it."""

    def look(connection: psycopg.Connection) -> None:
        (row,) = connection.execute(statement.encode()).fetchall()
        assert row[-1] >= seen[0]
        seen[0] = row[-1]

    return look


def comment(connection: psycopg.Connection, counted: Counter[int]) -> None:
    """Insert a comment. In about every third call, also delete a comment of the same post."""
    post = random.randint(1, KEYS)
    connection.execute("insert into comment (post, body) values (%s, 'text')", (post,))
    counted[post] += 1
    if random.random() < 0.3:
        gone = connection.execute(
            "delete from comment where id = (select id from comment where post = %s limit 1 for update skip locked)",
            (post,),
        )
        counted[post] -= gone.rowcount


def test_trigger_upserts_become_a_rollup_under_load(conn: psycopg.Connection, dsn: str) -> None:
    run(conn, TRIGGER)
    existing = {1: 2, 2: 1}
    (old,) = ["select coalesce((select comments from comment_total where post = 1), 0)"]

    def read(statement: str) -> Callable[[psycopg.Connection], None]:
        def look(connection: psycopg.Connection) -> None:
            with connection.transaction():
                connection.execute("set transaction isolation level repeatable read")
                assert one(connection, statement) == one(connection, "select count(*) from comment where post = 1")

        return look

    load = Load(dsn, comment, read(old))
    with load.running():
        load.go_on()
        run(conn, ROLLUP)
        load.go_on()
        assert conn.execute(COMPARE[0].encode()).fetchall() == []
        with workers(dsn, "comments"):
            load.look = read(READ[0])
            load.go_on()
            assert conn.execute(COMPARE[0].encode()).fetchall() == []
            run(conn, DROP)
            load.go_on()
    expected = {post: existing.get(post, 0) + load.totals.get(post, 0) for post in range(1, KEYS + 1)}
    assert dict(conn.execute("select post, n from pgcombine.comments").fetchall()) == expected
    assert conn.execute("select * from pgcombine.verify_rollup('comments')").fetchall() == []


def test_slots_move_to_a_queue_under_load(conn: psycopg.Connection, dsn: str) -> None:
    """Writers change to the new release one after the other. The slots are moved while other writers still use them."""
    table, upsert = SLOTS
    conn.execute(table.encode())

    read = partial(growing, seen=[0])
    load = Load(dsn, counting(upsert), read("select coalesce(sum(n), 0) from view_slot where page = 1"))
    with load.running():
        load.go_on()
        run(conn, [QUEUE])
        with workers(dsn, "page_views"):
            load.look = read(READ_BOTH)
            for writer in range(WRITERS):
                load.go_on()
                load.writes[writer] = counting(APPEND)
                assert conn.execute(MOVE.encode()).rowcount > 0
            load.go_on()
            while conn.execute(MOVE.encode()).rowcount:
                pass
            assert one(conn, "select count(*) from view_slot") == 0
            load.look = read(READ_QUEUE[0])
            load.go_on()
            run(conn, READ_QUEUE)
            load.go_on()
    combine_all(conn, "page_views")
    assert values(conn, "page_views") == load.totals


def test_a_key_of_redis_counts_once(conn: psycopg.Connection) -> None:
    run(conn, [QUEUE])
    run(conn, REDIS)
    assert conn.execute(REDIS[1].encode()).rowcount == 0
    assert one(conn, "select n from pgcombine.page_views_current where page = 3") == 40


@pytest.fixture
def comments(conn: psycopg.Connection) -> psycopg.Connection:
    """A database whose comments have a rollup beside the trigger."""
    run(conn, TRIGGER + ROLLUP)
    return conn


@embedded_only
def test_django_reads_the_rollup(comments: psycopg.Connection) -> None:
    (fence,) = fences(PAGE, "python")
    names: dict[str, Any] = {"__name__": "blog"}
    with django_on(comments):
        exec(compile(fence, PAGE.name, "exec"), names)
        assert [names["comments_of"](post) for post in (1, 2, 3)] == [2, 1, 0]


def test_rails_migration_makes_the_rollup(conn: psycopg.Connection) -> None:
    """Run the SQL of the Ruby fence: its heredocs, and the statement that drops the rollup."""
    run(conn, TRIGGER)
    (fence,) = fences(PAGE, "ruby")
    create, backfill = re.findall(r"<<~SQL\n((?:.*\n)*?) *SQL\n", fence)
    run(conn, [create, backfill])
    (view,) = re.findall(r'table_name = "(.*)"', fence)
    assert dict(conn.execute(f"select post, n from {view}".encode()).fetchall()) == {1: 2, 2: 1}  # noqa: S608
    (drop,) = re.findall(r'execute "(.*)"', fence)
    conn.execute(drop.encode())
    assert one(conn, "select to_regclass('pgcombine.comments')") is None
