"""Python observers: the database lists their names, and a worker that has their functions runs them in its passes."""

from __future__ import annotations

import contextlib
import os
import pickle
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
from psycopg import sql
from support import eventually, run_cli, start_cli
from support.audit import Change as Told
from support.audit import follow
from support.queues import add, one, values
from support.servers import embedded_only
from support.sessions import workers
from support.states import raises_state

from pgcombine.errors import ConfigError, ObserversMissingError, PassError, QueueNotFoundError
from pgcombine.queue.callbacks import Arrival, ArrivalStream, Change, ChangeStream, OfArrivals
from pgcombine.queue.combine_queue import CombineQueue
from pgcombine.worker import quarantine
from pgcombine.worker.drain import drain
from pgcombine.worker.worker import Worker

Connection = psycopg.Connection


def word_count(name: str = "wc", **options: int) -> CombineQueue:
    return CombineQueue(name, key=["word text"], value=["n bigint sum"], delete_when="n = 0", **options)


def copying(queue: CombineQueue, conn: Connection) -> None:
    """Add an observer that keeps the table ``copy`` equal to the values, and appends changes to the table ``told``.

    The observer asserts that each change's old value is in ``copy``.
    """
    conn.execute("create table copy (word text primary key, n bigint)")
    conn.execute("create table told (id bigserial, word text, old bigint, new bigint)")

    @queue.on_change
    def copy(tx: Connection, changes: ChangeStream) -> None:
        for key, old, new in changes:
            row = tx.execute("delete from copy where word = %s returning n", (key,)).fetchone()
            assert (row[0] if row else None) == old, f"{key}: told {old}, kept {row}"
            if new is not None:
                tx.execute("insert into copy values (%s, %s)", (key, new))
            tx.execute("insert into told (word, old, new) values (%s, %s, %s)", (key, old, new))


def test_old_values_match_an_observers_copy(conn: Connection, dsn: str) -> None:
    queue = word_count(buckets=3)
    copying(queue, conn)
    queue.create(conn)
    expected: dict[str, int] = {}
    with workers(dsn, app=[queue], count=3, poll=0.05):
        for i in range(150):
            updates = {f"w{i * j % 17}": (1 if (i + j) % 3 else -2) for j in range(5)}
            add(conn, updates)
            for word, n in updates.items():
                expected[word] = expected.get(word, 0) + n
        eventually(lambda: one(conn, "select pgcombine.backlog('wc')") == 0, what="no update is pending")
    expected = {word: n for word, n in expected.items() if n}
    assert values(conn) == expected
    assert dict(conn.execute("select word, n from copy").fetchall()) == expected
    assert follow(Told(*row) for row in conn.execute("select word, old, new from told order by id")) == expected


def test_observer_may_run_statements_while_it_reads_changes(conn: Connection, dsn: str) -> None:
    queue = word_count(buckets=1)
    seen: list[list[Change]] = []

    @queue.on_change
    def first(tx: Connection, changes: ChangeStream) -> None:
        half = iter(changes)
        kept = [next(half) for _ in range(1500)]
        # the observer sees the values that the pass has written
        assert tx.execute("select count(*) from pgcombine.wc_values").fetchone() == (3500,)
        kept += half
        seen.append(kept)
        assert len(changes) == 3500

    @queue.on_change
    def second(tx: Connection, changes: ChangeStream) -> None:
        pairs = list(zip(changes, changes, strict=True))  # two iterators at the same time
        assert [a for a, _ in pairs] == [b for _, b in pairs]
        seen.append([a for a, _ in pairs])

    queue.create(conn)
    add(conn, {f"w{i}": i + 1 for i in range(3500)})
    assert drain(dsn, queue).changes == 3500
    assert sorted(seen[0]) == sorted(Change(f"w{i}", None, i + 1) for i in range(3500))
    assert seen[0] == seen[1]
    add(conn, [("w1", -2), ("w2", 1), ("w3", 1), ("w3", -1)])
    seen.clear()
    queue.observers["first"] = lambda tx, changes: seen.append(list(changes))
    drain(dsn, queue)
    assert sorted(seen[0]) == [Change("w1", 2, None), Change("w2", 3, 4)]
    add(conn, [("w3", 1), ("w3", -1)])
    seen.clear()
    drain(dsn, queue)
    assert seen == []  # the observer isn't called without changes


def test_changes_of_several_columns_are_tuples_with_names(conn: Connection, dsn: str) -> None:
    queue = CombineQueue("wide", key=["x int", '"The %" text'], value=["count bigint sum", "top numeric max"])
    told: list[Change | Arrival] = []
    queue.on_change(lambda tx, changes: told.extend(changes), name="tell")
    queue.on_arrival(lambda tx, arrived: told.extend(arrived), name="tell arrivals")
    queue.create(conn)
    conn.execute("insert into pgcombine.wide_updates values (1, 'a', 1, 2.5), (1, 'a', 1, 3.5)")
    drain(dsn, queue)
    change, arrival = told
    assert isinstance(change, Change)
    assert (change.old, change.new) == (None, (2, 3.5))
    assert change.key == (1, "a") == arrival.key
    assert hash(change.key) == hash((1, "a"))
    assert (change.key.x, change.key["x"], change.key["The %"], change.key[1:]) == (1, 1, "a", ("a",))
    assert (change.new["count"], change.new.count(2), change.new.top, arrival[1].top) == (2, 1, 3.5, 3.5)
    assert pickle.loads(pickle.dumps(change)) == change
    with pytest.raises(KeyError, match="y"):
        change.key["y"]
    with pytest.raises(AttributeError, match="n"):
        assert change.new.n


def test_passes_without_the_observers_function_are_refused(conn: Connection, dsn: str) -> None:
    lengths = CombineQueue(
        "lengths", key=["length int"], value=["words bigint sum"], delete_when="words = 0", buckets=2
    )
    lengths.create(conn)
    queue = word_count(buckets=2)

    @queue.on_change
    def by_length(tx: Connection, changes: ChangeStream) -> None:
        lengths.enqueue(tx, ((len(c.key), (c.new is not None) - (c.old is not None)) for c in changes))

    queue.create(conn)
    words = {"a": 1, "b": 2, "aa": 1, "bb": -1, "ccc": 5}
    add(conn, words)
    pending = one(conn, "select count(*) from pgcombine.wc_pending")
    for refused in (
        lambda: conn.execute("select pgcombine.combine('wc', bucket) from generate_series(0, 1) bucket"),
        lambda: drain(dsn, "wc"),
        lambda: Worker(dsn, ["wc"]).run(threading.Event()),
    ):
        with pytest.raises((ObserversMissingError, psycopg.Error), match="by_length") as caught:
            refused()
        assert caught.value.sqlstate in ("PC008", None)
    assert one(conn, "select count(*) from pgcombine.wc_pending") == pending
    drain(dsn, queue)
    drain(dsn, "lengths")
    assert values(conn) == words
    assert values(conn, "lengths") == {1: 2, 2: 2, 3: 1}


@pytest.mark.wc
def test_worker_skips_queues_whose_observers_it_lacks(conn: Connection, dsn: str) -> None:
    other = word_count("other")
    other.on_change(lambda tx, changes: None, name="nothing")
    other.create(conn)
    add(conn, {"a": 1}, "other")
    with workers(dsn, poll=0.05):
        add(conn, {"a": 1})
        eventually(lambda: values(conn) == {"a": 1})
        assert one(conn, "select pgcombine.backlog('other')") == 1
        assert one(conn, "select count(*) from pgcombine.failure") == 0  # skipping a queue records no failure
        conn.execute("select pgcombine.drop_observer('other', 'nothing')")
    drain(dsn, "other")
    assert values(conn, "other") == {"a": 1}


def test_a_raising_observer_loses_nothing_and_a_key_is_quarantined(conn: Connection, dsn: str) -> None:
    queue = word_count(buckets=1, quarantine_after=2)
    copying(queue, conn)
    angry = True

    @queue.on_change
    def check(tx: Connection, changes: ChangeStream) -> None:
        for change in changes:
            if angry and change.key == "bad":
                raise ValueError("I won't have it")

    queue.create(conn)
    words = {f"w{i}": 1 for i in range(100)}
    add(conn, words | {"bad": 3})
    with pytest.raises(PassError):
        drain(dsn, queue)
    assert values(conn) == {}
    assert one(conn, "select count(*) from copy") == 0  # the other observer's writes were rolled back
    drain(dsn, queue)
    assert values(conn) == words
    (entry,) = quarantine.ls(conn)
    assert entry["key"] == {"word": "bad"}
    assert "I won't have it" in entry["error"]
    angry = False
    quarantine.retry(conn, "wc")
    drain(dsn, queue)
    assert values(conn) == words | {"bad": 3}
    assert dict(conn.execute("select word, n from copy").fetchall()) == values(conn)


def test_observers_of_arrivals_get_updates_that_change_nothing(conn: Connection, dsn: str) -> None:
    queue = CombineQueue("wc", key=["word text"], value=["n bigint sum", "top int max"], buckets=1)
    seen: list[object] = []

    @queue.on_arrival
    def feed(tx: Connection, arrived: ArrivalStream) -> None:
        assert len(arrived) == len(list(arrived))
        seen.append(sorted(arrived))

    @queue.on_change(name="tell")
    def tell(tx: Connection, changes: ChangeStream) -> None:
        seen.append(sorted(changes))

    queue.create(conn)
    conn.execute("create table audit (n bigint)")
    conn.execute("select pgcombine.add_observer('wc', 'audit', 'select count(*) from arrived')")
    queue.enqueue(conn, [("a", 1, 5), ("a", 2, None), ("b", 0, None)])
    drain(dsn, queue)
    arrived = [Arrival("a", (3, 5)), Arrival("b", (0, None))]
    assert seen == [arrived, [Change("a", None, (3, 5)), Change("b", None, (0, None))]]
    seen.clear()
    queue.enqueue(conn, [("a", 1, 3), ("a", -1, 4)])
    drain(dsn, queue)
    assert seen == [[Arrival("a", (0, 4))]]
    seen.clear()
    conn.execute("select pgcombine.set_expiry('wc', 'n > 0')")
    with workers(dsn, app=[queue], poll=0.05):
        eventually(lambda: seen == [[Change("a", (3, 5), None)]], what="a pass without updates")


def test_arrivals_come_in_portions_beside_changes(conn: Connection, dsn: str) -> None:
    queue = word_count(buckets=1)
    add_up: list[tuple[int, int]] = []
    queue.on_arrival(lambda tx, arrived: add_up.append((len(arrived), sum(a.value for a in arrived))), name="feed")
    queue.on_change(lambda tx, changes: add_up.append((len(changes), sum(c.new for c in changes))), name="tell")
    queue.create(conn)
    add(conn, {f"w{i}": i for i in range(2500)})
    drain(dsn, queue)
    # w0 meets delete_when, so it gets no value and there is no change of it
    assert add_up == [(2500, sum(range(2500))), (2499, sum(range(2500)))]


def test_search_for_failing_keys_hands_over_arrivals(conn: Connection, dsn: str) -> None:
    """During the search, the observer also gets the arrival of a key whose updates cancel out."""
    queue = word_count(buckets=1, quarantine_after=1)
    conn.execute("create table fed (word text, n bigint)")

    @queue.on_arrival
    def feed(tx: Connection, arrived: ArrivalStream) -> None:
        for key, n in arrived:
            if key == "bad":
                raise ValueError("I won't have it")
            tx.execute("insert into fed values (%s, %s)", (key, n))

    queue.create(conn)
    words = {f"w{i}": i for i in range(100)}
    add(conn, [*words.items(), ("bad", 1), ("nil", 1), ("nil", -1)])
    drain(dsn, queue)
    assert [entry["key"] for entry in quarantine.ls(conn)] == [{"word": "bad"}]
    fed = conn.execute("select word, n from fed").fetchall()
    assert sorted(fed) == sorted([*words.items(), ("nil", 0)])


def test_an_observer_cant_hide_what_it_did_to_the_transaction(conn: Connection, dsn: str) -> None:
    """COMMIT after a failed statement rolls back without an error. The pass must not seem to have succeeded.

    An observer may catch the error of a statement that it runs in ``tx.transaction()``.
    """

    def swallow(tx: Connection, changes: ChangeStream) -> None:
        with contextlib.suppress(psycopg.Error):
            tx.execute("select 1 / 0")

    def end(tx: Connection, changes: ChangeStream) -> None:
        tx.execute("rollback")

    def careful(tx: Connection, changes: ChangeStream) -> None:
        with contextlib.suppress(psycopg.Error), tx.transaction():
            tx.execute("select 1 / 0")

    def commit(tx: Connection, changes: ChangeStream) -> None:
        tx.commit()

    for observer, message in [
        (commit, "forbidden"),
        (swallow, "went on after an error"),
        (end, "ended the pass's transaction"),
    ]:
        queue = word_count(observer.__name__)
        queue.on_change(observer)
        queue.create(conn)
        queue.enqueue(conn, [("a", 1)])
        with pytest.raises(PassError, match=message):
            drain(dsn, queue, timeout=60)
        assert queue.backlog(conn) == 1
        assert one(conn, "select attempts from pgcombine.failure where queue = %s", queue.name) == 1
    queue = word_count()
    queue.on_change(careful)
    queue.create(conn)
    queue.enqueue(conn, [("a", 1)])
    drain(dsn, queue, timeout=60)
    assert values(conn) == {"a": 1}


def test_the_decorator_takes_a_name() -> None:
    queue = word_count()

    @queue.on_change(name="first")
    def observe(tx: Connection, changes: ChangeStream) -> int:
        return len(changes)

    @queue.on_change()
    def second(tx: Connection, changes: ChangeStream) -> None: ...

    @queue.on_arrival(name="third")
    def feed(tx: Connection, arrived: ArrivalStream) -> None: ...

    assert queue.observers == {"first": observe, "second": second, "third": OfArrivals(feed)}
    queue.on_arrival(feed, name="third")
    with pytest.raises(ConfigError, match="third"):
        queue.on_change(feed, name="third")


def test_functions_that_would_never_run_are_refused() -> None:
    async def later(tx: object, changes: object) -> None: ...

    def portions(tx: object, changes: object) -> Iterator[object]:
        yield None

    queue = word_count()
    with pytest.raises(ConfigError, match="later"):
        queue.on_change(later)
    with pytest.raises(ConfigError, match="portions"):
        queue.on_change(portions)


@pytest.mark.wc
def test_drain_declares_observers(conn: Connection, dsn: str) -> None:
    queue = word_count()
    queue.on_change(lambda tx, changes: None, name="late")
    drain(dsn, queue)  # declares the observers of the queue in the database
    declared = "select observer, language from pgcombine.observer order by position"
    assert conn.execute(declared).fetchall() == [("late", "python")]
    for arguments in ("'wc', 'x', 'select 1', language => 'python'", "'wc', 'x', language => 'perl'", "'wc', 'x'"):
        with raises_state("PC003"):
            conn.execute(sql.SQL("select pgcombine.add_observer({})").format(sql.SQL(arguments)))
    with pytest.raises(ConfigError):
        queue.on_change(lambda tx, changes: 1, name="late")
    with pytest.raises(QueueNotFoundError):
        drain(dsn, word_count("nowhere"))


APP = """
from pgcombine.queue.combine_queue import CombineQueue
wc = CombineQueue("wc", key=["word text"], value=["n bigint sum"])
@wc.on_change
def copy(tx, changes):
    for key, old, new in changes:
        tx.execute("insert into copy values (%s, %s)", (key, new))
queues = [wc]
class app:
    queues = queues
nothing = 5
"""


@pytest.mark.wc
@embedded_only
@pytest.mark.parametrize(
    "attribute", ["app", *(pytest.param(name, marks=pytest.mark.slow) for name in ("wc", "queues"))]
)
def test_worker_loads_observers_of_an_application(conn: Connection, dsn: str, tmp_path: Path, attribute: str) -> None:
    conn.execute("create table copy (word text, n bigint)")
    (tmp_path / "shop.py").write_text(textwrap.dedent(APP))
    add(conn, {"a": 1})
    with start_cli("worker", "--app", f"shop:{attribute}", "--dsn", dsn, cwd=tmp_path) as worker:
        eventually(lambda: conn.execute("select * from copy").fetchall() == [("a", 1)])
        assert worker.poll() is None
    add(conn, {"a": 1})
    without = run_cli("worker", "wc", "--drain", "--dsn", dsn)
    assert (without.returncode, without.stderr.count("\n")) == (1, 1)
    assert "--app" in without.stderr
    drained = run_cli("drain", "wc", "--app", f"shop:{attribute}", "--dsn", dsn, cwd=tmp_path)
    assert drained.returncode == 0, drained.stderr
    assert conn.execute("select * from copy").fetchall() == [("a", 1), ("a", 2)]


@embedded_only
def test_invalid_application_is_refused(dsn: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(textwrap.dedent(APP))
    (tmp_path / "broken.py").write_text("1 / 0")
    for name in ("shop", "shop:nowhere", "nowhere:app", "shop:nothing", "broken:app"):
        done = run_cli("worker", "--app", name, "--dsn", dsn, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.stderr
        assert name in done.stderr


@pytest.mark.slow
@embedded_only
def test_changes_take_little_memory(conn: Connection, dsn: str) -> None:
    queue = word_count(buckets=1)
    most = 0
    me = psutil.Process(os.getpid())

    @queue.on_change
    def watch(tx: Connection, changes: ChangeStream) -> None:
        nonlocal most
        before = me.memory_info().rss
        for number, _ in enumerate(changes):
            if number % 1000 == 0:
                most = max(most, me.memory_info().rss - before)

    queue.create(conn)
    conn.execute("insert into pgcombine.wc_updates select repeat('x', 200) || i, 1 from generate_series(1, 150000) i")
    assert drain(dsn, queue).changes == 150000
    assert most < 20 << 20  # less than all changes together would take
