"""Moves of shards between nodes: killed, refused and cancelled ones, and moves beside writers."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb
from support import run_cli
from support.fronts import add_node, connected, make_shards
from support.queues import add, one
from support.servers import Server, with_contrib
from support.sessions import waits
from support.states import raises_state

from pgcombine.errors import (
    InvalidDefinitionError,
    OperationalError,
    QueueExistsError,
    QueueNotEmptyError,
    QueueNotFoundError,
    WaitTimeoutError,
)
from pgcombine.shard import moving

pytestmark = with_contrib

WORDS = [f"w{i}" for i in range(40)]
PLACES = "select shard, node, target, former from pgcombine.front_shard where shard = 1"
ONCE = "select pgcombine.enqueue_once('wc', %s, %s)"


class KilledError(Exception):
    """Stands for the death of the program."""


def current(conn: psycopg.Connection) -> dict[str, int]:
    return dict(conn.execute("select word, n from pgcombine.wc_current").fetchall())


def queues(nodes: list[str]) -> list[list[str]]:
    found = []
    for dsn in nodes:
        with connected(dsn) as conn:
            found.append(
                [queue for (queue,) in conn.execute("select queue from pgcombine.queue order by 1").fetchall()]
            )
    return found


@contextmanager
def killed(patch: pytest.MonkeyPatch, step: str, *, after: bool) -> Iterator[None]:
    """Let the program die before or after a step, which is a function of ``moving``."""
    whole = getattr(moving, step)

    def die(*arguments: object, **options: object) -> object:
        if after:
            whole(*arguments, **options)
        raise KilledError

    with patch.context() as patched:
        patched.setattr(moving, step, die)
        with pytest.raises(KilledError):
            yield


@pytest.fixture
def filled(front: psycopg.Connection) -> psycopg.Connection:
    add(front, dict.fromkeys(WORDS, 1))
    assert one(front, ONCE, "t1", Jsonb([{"word": word, "n": 2} for word in WORDS])) is True
    return front


def test_move_takes_values_and_tokens_along(filled: psycopg.Connection, dsn: str, nodes: list[str]) -> None:
    moving.move_shard(dsn, "wc", 1, "n0")
    assert queues(nodes) == [["wc_00", "wc_01", "wc_02"], ["wc_03"]]
    assert current(filled) == dict.fromkeys(WORDS, 3)
    assert one(filled, ONCE, "t1", Jsonb([{"word": word, "n": 2} for word in WORDS])) is False
    add(filled, dict.fromkeys(WORDS, 1))
    assert current(filled) == dict.fromkeys(WORDS, 4)
    assert filled.execute("select * from pgcombine.check_front('wc')").fetchall() == []
    moving.move_shard(dsn, "wc", 1, "n0")  # the shard is there already
    assert run_cli("queue", "move-shard", "wc", "1", "n1", "--dsn", dsn).stdout == "moved: wc\n"
    assert queues(nodes) == [["wc_00", "wc_02"], ["wc_01", "wc_03"]]
    assert current(filled) == dict.fromkeys(WORDS, 4)


@pytest.mark.parametrize(
    ("step", "after"),
    [("drain", False), ("drain", True), ("_copy", False), ("_copy", True), ("_end", False), ("_end", True)],
)
def test_killed_move_goes_on(
    filled: psycopg.Connection, dsn: str, nodes: list[str], monkeypatch: pytest.MonkeyPatch, step: str, after: bool
) -> None:
    with killed(monkeypatch, step, after=after):
        moving.move_shard(dsn, "wc", 1, "n0")
    moving.move_shard(dsn, "wc", 1, "n0")
    assert queues(nodes) == [["wc_00", "wc_01", "wc_02"], ["wc_03"]]
    assert filled.execute(PLACES).fetchall() == [(1, "n0", None, None)]
    add(filled, dict.fromkeys(WORDS, 1))
    assert current(filled) == dict.fromkeys(WORDS, 4)


@pytest.mark.parametrize(("step", "after"), [("_copy", False), ("_copy", True)])
def test_move_to_its_own_node_cancels_a_killed_move(
    filled: psycopg.Connection, dsn: str, nodes: list[str], monkeypatch: pytest.MonkeyPatch, step: str, after: bool
) -> None:
    with killed(monkeypatch, step, after=after):
        moving.move_shard(dsn, "wc", 1, "n0")
    with raises_state("PC015"):
        add(filled, dict.fromkeys(WORDS, 1))
    moving.move_shard(dsn, "wc", 1, "n1")
    assert queues(nodes) == [["wc_00", "wc_02"], ["wc_01", "wc_03"]]
    assert filled.execute(PLACES).fetchall() == [(1, "n1", None, None)]
    add(filled, dict.fromkeys(WORDS, 1))
    assert current(filled) == dict.fromkeys(WORDS, 4)


def test_move_that_would_lose_something_is_refused(filled: psycopg.Connection, dsn: str, nodes: list[str]) -> None:
    with pytest.raises(InvalidDefinitionError):
        moving.move_shard(dsn, "wc", 4, "n0")
    with pytest.raises(InvalidDefinitionError):
        moving.move_shard(dsn, "wc", 1, "n7")
    with pytest.raises(QueueNotFoundError):
        moving.move_shard(dsn, "wx", 1, "n0")
    with connected(nodes[1]) as conn:
        conn.execute("select pgcombine.pause('wc_01')")
        with pytest.raises(QueueNotEmptyError):
            moving.move_shard(dsn, "wc", 1, "n0")
        conn.execute("select pgcombine.resume('wc_01')")
        conn.execute("select pgcombine.add_observer('wc_01', 'seen', 'select from changes')")
    with pytest.raises(QueueNotEmptyError):
        moving.move_shard(dsn, "wc", 1, "n0")
    add(filled, dict.fromkeys(WORDS, 1))
    assert current(filled) == dict.fromkeys(WORDS, 4)


def test_queue_that_is_not_the_shards_is_never_dropped(filled: psycopg.Connection, dsn: str, nodes: list[str]) -> None:
    make_shards(nodes[0], [1])
    with connected(nodes[0]) as conn:
        add(conn, {"other": 7}, "wc_01")
        for _ in range(2):
            with pytest.raises(QueueExistsError):
                moving.move_shard(dsn, "wc", 1, "n0")
        moving.move_shard(dsn, "wc", 1, "n1")
        assert conn.execute("select word, n from pgcombine.wc_01_current").fetchall() == [("other", 7)]
    assert filled.execute(PLACES).fetchall() == [(1, "n1", None, None)]


@pytest.mark.parametrize(
    ("catalog", "node"),
    [("n1,n0,", "n1"), ("n1,,n0", "n1"), ("n1,,n0", "n0")],
)
def test_older_catalog_loses_no_shard(
    filled: psycopg.Connection, dsn: str, nodes: list[str], catalog: str, node: str
) -> None:
    """The catalog of a restored front may be older than the last move."""
    moving.move_shard(dsn, "wc", 1, "n0")
    filled.execute(
        "update pgcombine.front_shard set (node, target, former) = (%s, %s, %s) where shard = 1",
        [place or None for place in catalog.split(",")],
    )
    with pytest.raises(QueueNotFoundError):
        moving.move_shard(dsn, "wc", 1, node)
    assert queues(nodes) == [["wc_00", "wc_01", "wc_02"], ["wc_03"]]


@pytest.mark.parametrize("target", ["n0", None])
@pytest.mark.parametrize("node", ["n0", "n1"])
def test_catalog_from_before_the_switch_loses_no_shard(
    filled: psycopg.Connection,
    dsn: str,
    nodes: list[str],
    monkeypatch: pytest.MonkeyPatch,
    target: str | None,
    node: str,
) -> None:
    """The former node still has its fenced queue, and the new node has accepted further updates."""
    with killed(monkeypatch, "_end", after=False):
        moving.move_shard(dsn, "wc", 1, "n0")
    add(filled, dict.fromkeys(WORDS, 1))
    filled.execute(
        "update pgcombine.front_shard set (node, target, former) = ('n1', %s, null) where shard = 1", (target,)
    )
    with pytest.raises((InvalidDefinitionError, QueueExistsError), match='"wc_01"'):
        moving.move_shard(dsn, "wc", 1, node)
    with connected(nodes[0]) as conn:
        assert {3 + 1} == {n for (n,) in conn.execute("select n from pgcombine.wc_01_current").fetchall()}


def test_updates_that_came_back_stop_the_copy(filled: psycopg.Connection, dsn: str, nodes: list[str]) -> None:
    with connected(nodes[1]) as conn, pytest.raises(psycopg.errors.SerializationFailure, match="pending again"):
        conn.execute("select pgcombine_internal.copy_shard('wc_01')")


def test_move_to_its_own_node_opens_a_fence(filled: psycopg.Connection, dsn: str, nodes: list[str]) -> None:
    with connected(nodes[1]) as conn:
        conn.execute("select pgcombine_internal.fence_shard('wc_01', '{updates,values}')")
    problems = filled.execute("select problem from pgcombine.check_front('wc')").fetchall()
    assert problems == [('queue "wc_01" refuses updates, but no move is known: pgcombine queue move-shard wc 1 n1',)]
    moving.move_shard(dsn, "wc", 1, "n1")
    assert filled.execute("select problem from pgcombine.check_front('wc')").fetchall() == []
    add(filled, dict.fromkeys(WORDS, 1))
    assert current(filled) == dict.fromkeys(WORDS, 4)


def test_fence_also_refuses_values(filled: psycopg.Connection, nodes: list[str]) -> None:
    with connected(nodes[1]) as conn:
        conn.execute("select pgcombine_internal.fence_shard('wc_01', '{updates,values}')")
        with raises_state("PC015"):
            conn.execute("insert into pgcombine.wc_01_values values ('a', 1)")


def test_error_at_the_switch_lets_writers_go_on(filled: psycopg.Connection, dsn: str, nodes: list[str]) -> None:
    """The switch waits for a reader's lock until ``lock_timeout``."""
    with connected(dsn) as reader, reader.transaction():
        reader.execute("select count(*) from pgcombine.wc_current")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            moving.move_shard(dsn, "wc", 1, "n0")
    add(filled, dict.fromkeys(WORDS, 1))
    assert current(filled) == dict.fromkeys(WORDS, 4)
    moving.move_shard(dsn, "wc", 1, "n0")
    assert current(filled) == dict.fromkeys(WORDS, 4)


def test_lost_session_of_the_front_keeps_the_fence(
    filled: psycopg.Connection, dsn: str, nodes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the session is lost, another one may move the shard, so the queue must go on refusing updates."""

    def lose(*arguments: object) -> None:
        filled.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity "
            "where application_name = 'pgcombine move-shard' and datname = current_database()"
        )
        raise OperationalError("the copy failed")

    with monkeypatch.context() as patched:
        patched.setattr(moving, "_copy", lose)
        with pytest.raises((OperationalError, psycopg.OperationalError)):
            moving.move_shard(dsn, "wc", 1, "n0")
    with raises_state("PC015"):
        add(filled, dict.fromkeys(WORDS, 1))
    moving.move_shard(dsn, "wc", 1, "n0")
    add(filled, dict.fromkeys(WORDS, 1))
    assert current(filled) == dict.fromkeys(WORDS, 4)


def test_front_with_an_unfinished_move_is_not_dropped(
    filled: psycopg.Connection, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with killed(monkeypatch, "_copy", after=True):
        moving.move_shard(dsn, "wc", 1, "n0")
    with raises_state("PC005"):
        filled.execute("select pgcombine.drop_front('wc')")


def test_failed_copy_lets_writers_go_on(
    filled: psycopg.Connection, dsn: str, nodes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise OperationalError('node "n0" doesn\'t answer; try again later')

    with monkeypatch.context() as patched:
        patched.setattr(moving, "_copy", fail)
        with pytest.raises(OperationalError):
            moving.move_shard(dsn, "wc", 1, "n0")
    add(filled, dict.fromkeys(WORDS, 1))
    assert current(filled) == dict.fromkeys(WORDS, 4)


def test_writer_that_waits_for_a_move_that_fails_meets_no_fence(
    filled: psycopg.Connection, dsn: str, nodes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with connected(dsn) as writer, ThreadPoolExecutor() as pool:
        written = []

        def fail(*arguments: object) -> None:
            written.append(pool.submit(add, writer, dict.fromkeys(WORDS, 1)))
            waits(filled, writer.info.backend_pid)
            with connected(nodes[1]) as node:
                node.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity "
                    "where application_name = 'pgcombine move-shard' and datname = current_database()"
                )
            raise OperationalError('node "n0" doesn\'t answer; try again later')

        monkeypatch.setattr(moving, "_copy", fail)
        with pytest.raises(OperationalError):
            moving.move_shard(dsn, "wc", 1, "n0")
        written[0].result(timeout=60)
    assert current(filled) == dict.fromkeys(WORDS, 4)


def test_two_fronts_do_not_move_a_shard_at_once(
    filled: psycopg.Connection, dsn: str, nodes: list[str], server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = moving._copy
    with server.migrated() as other:
        with connected(other) as conn:
            for number, node in enumerate(nodes):
                add_node(conn, f"n{number}", node)
            conn.execute("select pgcombine.create_front('wc', '{n0,n1}')")

        def move_too(*arguments: Any) -> None:
            with pytest.raises(WaitTimeoutError):
                moving.move_shard(other, "wc", 1, "n0")
            copy(*arguments)

        monkeypatch.setattr(moving, "_copy", move_too)
        moving.move_shard(dsn, "wc", 1, "n0")
        with pytest.raises(QueueNotFoundError):
            moving.move_shard(other, "wc", 1, "n0")
    assert current(filled) == dict.fromkeys(WORDS, 3)


def test_writers_count_exactly_beside_moves(front: psycopg.Connection, dsn: str, nodes: list[str]) -> None:
    done = threading.Event()

    def write(writer: int) -> Counter[str]:
        """Write at least until the moves are done. A token makes it safe to repeat a write that met a conflict."""
        written: Counter[str] = Counter()
        number = 0
        with connected(dsn) as conn:
            while not done.is_set() or number < 20:
                number += 1
                words = WORDS[number % 7 :: 7]
                updates = Jsonb([{"word": word, "n": 1} for word in words])
                while True:
                    try:
                        conn.execute(ONCE, (f"{writer} {number}", updates))
                        break
                    except (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected):
                        continue
                written.update(words)
        return written

    with ThreadPoolExecutor() as pool:
        writers = [pool.submit(write, writer) for writer in range(4)]
        try:
            for shard, node in ((1, "n0"), (0, "n1"), (3, "n0"), (1, "n1"), (3, "n1")):
                moving.move_shard(dsn, "wc", shard, node)
        finally:
            done.set()
        written = sum((writer.result(120) for writer in writers), Counter())
    assert current(front) == dict(written)
    assert queues(nodes) == [["wc_02"], ["wc_00", "wc_01", "wc_03"]]
