"""An export's table in another PostgreSQL database ends up with the queue's values."""

from __future__ import annotations

import json
import random
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import date, datetime, timedelta

import psycopg
import pytest
from support.exports import (
    exported,
    impatient,
    make_export,
    make_exported,
    quarantined,
    run_at,
    state,
    waiting,
    watched,
    worker_to,
)
from support.impostor import ASKED, SECRET, impostor
from support.queues import add, combine, combine_all, make_queue, one, rows, values
from support.servers import Server, embedded_only
from support.sessions import in_background, workers
from support.wait import eventually

from pgcombine import ExportWorker
from pgcombine.database.sqlfiles import query, repeatables
from pgcombine.errors import DeliveryRejectedError, DestinationDownError, ExportError
from pgcombine.export.delivery import SEARCH_ENTRIES
from pgcombine.export.entries import Entry
from pgcombine.export.postgres import _TEXT
from pgcombine.export.verifying import differences
from pgcombine.handoff import ownership


@pytest.mark.wc
def test_table_equals_the_values(conn: psycopg.Connection, dsn: str, target: str) -> None:
    combine(conn, {"before": 1})
    make_export(conn, target, existing=True)
    combine(conn, {"a": 1, "b": 2}, {"a": 4, "b": -2})
    assert worker_to(dsn, target).drain() > 0
    assert exported(target) == values(conn) == {"before": 1, "a": 5}
    assert rows(conn, "search_exports") == []
    status = conn.execute("select state, pending, quarantined from pgcombine.export_stat").fetchall()
    assert status == [("up", 0, 0)]
    combine(conn, {"a": -5, "b": 7})
    worker_to(dsn, target).drain()
    assert exported(target) == values(conn) == {"before": 1, "b": 7}
    conn.execute("select pgcombine.truncate_queue('wc')")
    worker_to(dsn, target).drain()
    assert exported(target) == {}


def test_both_databases_get_the_same_settings() -> None:
    text = dict(repeatables())["core/internal/types/portable_text.sql"]
    assert dict(re.findall(r"\('(\w+)', '([^']*)'\)", text)) == _TEXT


def test_values_survive_other_settings(dsn: str, target: str, server: Server) -> None:
    """Dates, intervals and floating point numbers arrive unchanged when the databases' settings differ.

    Verify finds a surplus key then, but no other difference.
    """
    for database, settings in {
        dsn: {"datestyle": "SQL, DMY", "intervalstyle": "sql_standard", "extra_float_digits": "0"},
        target: {
            "datestyle": "German",
            "intervalstyle": "iso_8601",
            "timezone": "Asia/Tokyo",
            "extra_float_digits": "0",
        },
    }.items():
        name = psycopg.conninfo.conninfo_to_dict(database)["dbname"]
        for setting, value in settings.items():
            server.execute(
                psycopg.sql.SQL("alter database {} set {} = {}").format(
                    psycopg.sql.Identifier(str(name)), psycopg.sql.SQL(setting), value
                )
            )
    with psycopg.connect(dsn, autocommit=True) as conn:
        make_queue(
            conn,
            key=["d date", "k float8"],
            value=["at timestamp max", "i interval sum", "f float8 max"],
            delete_when=None,
        )
        make_export(conn, target)
        conn.execute("set datestyle = 'ISO'; set intervalstyle = 'postgres'")
        conn.execute(
            "insert into pgcombine.wc_updates values ('2024-03-04', 2/3.0, '2024-03-04 05:06', '-1 day 2 hours', 1/3.0)"
        )
        combine_all(conn)
        seen: list[Entry] = []
        make_export(conn, export="other", existing=True)
        ExportWorker(dsn, "other", seen.extend).drain()
    assert worker_to(dsn, target).drain() == 1
    expected = (date(2024, 3, 4), 2 / 3, datetime(2024, 3, 4, 5, 6), timedelta(days=-1, hours=2), 1 / 3)
    with psycopg.connect(target) as there:
        there.execute("set datestyle = 'ISO'; set intervalstyle = 'postgres'; set extra_float_digits = 1")
        assert there.execute("select d, k, at, i, f from search").fetchall() == [expected]
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("set datestyle = 'ISO'; set intervalstyle = 'postgres'")
        assert list(differences(conn, "search", target=target)) == []
        run_at(target, "update search set k = 1 / 3.0::float8")
        assert sorted(problem for _, problem in differences(conn, "search", target=target)) == ["missing", "surplus"]
    assert [(*entry.key, *entry.new) for entry in seen] == [expected]


@pytest.mark.parametrize("compact", [True, False])
def test_two_workers_deliver_beside_passes_and_producers(
    conn: psycopg.Connection, dsn: str, target: str, compact: bool
) -> None:
    """Two export loops share a bucket beside four producers and four loops of passes, all with the same eight keys."""
    make_exported(conn, target, buckets=1, compact=compact, batch=7)
    stop = threading.Event()

    def produce(seed: int) -> None:
        source = random.Random(seed)
        with psycopg.connect(dsn, autocommit=True) as own:
            for _ in range(100):
                add(own, [(source.choice("abcdefgh"), source.choice([-1, 1])) for _ in range(5)])

    exporter = worker_to(dsn, target, concurrency=2, poll=0.01)
    with watched(target), in_background(lambda: exporter.run(stop)):
        with workers(dsn, "wc", count=4):
            with ThreadPoolExecutor(4) as pool:
                list(pool.map(produce, range(4)))
            eventually(lambda: one(conn, "select pgcombine.backlog('wc')") == 0)
        eventually(lambda: waiting(conn) == 0, timeout=60)
        stop.set()
    assert exported(target) == values(conn)


def test_entries_wait_for_a_destination_that_is_down(
    conn: psycopg.Connection, dsn: str, target: str, server: Server
) -> None:
    """10,000 entries wait while the destination refuses connections. Then the table gets the queue's values."""
    make_exported(conn, target, batch=500)
    impatient(conn, backoff="1 ms", longest_backoff="20 ms")
    name = psycopg.conninfo.conninfo_to_dict(target)["dbname"]
    server.execute(psycopg.sql.SQL("alter database {} allow_connections false").format(psycopg.sql.Identifier(name)))
    stop = threading.Event()
    exporter = worker_to(dsn, target, concurrency=2, poll=0.01)
    with in_background(lambda: exporter.run(stop)):
        for round_ in range(4):
            combine(conn, {f"w{number}": round_ + 1 for number in range(2500)})
        eventually(lambda: state(conn) == "down")
        assert waiting(conn) == 10_000
        with pytest.raises(DestinationDownError, match="its destination is down, 10000 entries wait"):
            worker_to(dsn, target).drain()
        server.execute(psycopg.sql.SQL("alter database {} allow_connections true").format(psycopg.sql.Identifier(name)))
        eventually(lambda: waiting(conn) == 0)
        stop.set()
    assert exported(target) == values(conn)
    assert state(conn) == "up"


def test_entry_refused_for_its_data_is_quarantined(conn: psycopg.Connection, dsn: str, target: str) -> None:
    make_exported(conn, target)
    with psycopg.connect(target, autocommit=True) as there:
        there.execute(
            "create table search (word text primary key, n bigint check (n < 1000), "
            "pgcombine_seq bigint not null, pgcombine_deleted boolean not null)"
        )
    combine(conn, {f"w{number}": number + 501 for number in range(500)})
    worker_to(dsn, target).drain()
    assert exported(target) == {word: n for word, n in values(conn).items() if n != 1000}
    held = conn.execute("select entry->>'word', entry->'new_n', error from pgcombine.export_entry").fetchall()
    assert [(word, n) for word, n, _ in held] == [("w499", 1000)]
    assert "search_n_check" in held[0][2]
    assert state(conn) == "up"

    run_at(target, "alter table search drop constraint search_n_check")
    assert one(conn, "select pgcombine_internal.export_release('search', null, true)") == 1
    worker_to(dsn, target).drain()
    assert exported(target) == values(conn)


def refused(conn: psycopg.Connection) -> list[tuple[str, int]]:
    return conn.execute(
        "select entry->>'word', (entry->'new_n')::int from pgcombine.export_entry order by 1"
    ).fetchall()


def test_later_entries_of_a_refused_key_wait_in_quarantine(conn: psycopg.Connection, dsn: str, target: str) -> None:
    """The quarantine has one entry for each key: the first old value, and the last new one."""
    make_queue(conn, key=["word text", "day date"])
    make_export(conn, target)
    worker = worker_to(dsn, target)

    def deliver(**updates: int) -> list[tuple[str, int]]:
        for word, n in updates.items():
            conn.execute("insert into pgcombine.wc_updates values (%s, '2024-02-29', %s)", (word, n))
        combine_all(conn)
        worker.drain()
        return refused(conn)

    assert deliver(c=0) == deliver(c=1) == []
    run_at(target, "alter table search add check (n < 1000)")
    assert deliver(a=1000, b=2000, c=1) == [("a", 1000), ("b", 2000)]
    assert deliver(a=-1, b=1, c=1) == [("a", 999), ("b", 2001)]
    assert one(conn, "select quarantined from pgcombine.export_stat") == 2
    assert one(conn, "select bool_and(entry -> 'old_n' = 'null') from pgcombine.export_entry") is True
    assert one(conn, "select pgcombine_internal.export_release('search', null, true)") == 2
    assert deliver(b=-1) == [("b", 2000)]
    seq = one(conn, "select seq from pgcombine.export_entry")
    assert one(conn, "select pgcombine_internal.export_release('search', %s, false)", seq) == 1
    assert deliver(b=-1999) == []
    with psycopg.connect(target) as there:
        assert rows_of(there) == {"a": 999, "b": 1, "c": 3}


def rows_of(there: psycopg.Connection) -> dict[str, int]:
    return dict(there.execute("select word, n from search where not pgcombine_deleted").fetchall())


@pytest.mark.slow
def test_failed_delivery_changes_nothing(conn: psycopg.Connection, dsn: str) -> None:
    """An entry that joins its key's entry in quarantine does so only once the rest of its batch is delivered."""
    make_exported(conn)
    impatient(conn)
    outcome: list[Exception] = [DeliveryRejectedError("no"), DestinationDownError("away")]

    def deliver(entries: list[Entry]) -> None:
        raise outcome[0]

    for left in ([("a", 1)], [("a", 1)]):
        combine(conn, {"a": 1} if len(outcome) == 2 else {"a": 1, "b": 1})
        with suppress(DestinationDownError):
            ExportWorker(dsn, "search", deliver).drain()
        assert refused(conn) == left
        outcome.pop(0)


def test_refused_key_is_delivered_in_order_once_it_is_retried(conn: psycopg.Connection, dsn: str) -> None:
    """Without compaction, the quarantine keeps each later entry of a refused key, also those of the same batch."""
    make_exported(conn, compact=False)
    got: list[tuple[str, int]] = []
    bad = {("a", 2)}

    def deliver(entries: list[Entry]) -> None:
        found = [(entry.key, entry.new) for entry in entries]
        if bad & set(found):
            raise DeliveryRejectedError("no")
        got.extend(found)

    worker = ExportWorker(dsn, "search", deliver)
    combine(conn, *[{"a": 1, "b": 1}] * 3)
    worker.drain()
    combine(conn, {"a": 1, "b": 1})
    worker.drain()
    assert sorted(got) == [("a", 1), ("b", 1), ("b", 2), ("b", 3), ("b", 4)]
    assert refused(conn) == [("a", 2), ("a", 3), ("a", 4)]
    bad.clear()
    seq = one(conn, "select min(seq) from pgcombine.export_entry")
    assert one(conn, "select pgcombine_internal.export_release('search', %s, true)", seq) == 3
    combine(conn, {"a": 1})
    worker.drain()
    assert [n for word, n in got if word == "a"] == [1, 2, 3, 4, 5]
    assert refused(conn) == []


@pytest.mark.slow
def test_many_failing_entries_dont_hold_up_others(conn: psycopg.Connection, dsn: str, target: str) -> None:
    """The failing entries come first and fill whole batches. They are quarantined, and the destination stays up."""
    make_exported(conn, target, buckets=1, batch=500)
    impatient(conn)
    with psycopg.connect(target, autocommit=True) as there:
        there.execute(
            "create table search (word text primary key, n bigint check (n < 1000), "
            "pgcombine_seq bigint not null, pgcombine_deleted boolean not null)"
        )
    combine(conn, {f"bad{number}": 1000 for number in range(1000)})
    combine(conn, {f"good{number}": 1 for number in range(500)})
    stop = threading.Event()
    worker = worker_to(dsn, target)
    with in_background(lambda: worker.run(stop)):
        try:
            eventually(lambda: waiting(conn) == 0)
        finally:
            stop.set()
    assert exported(target) == {word: n for word, n in values(conn).items() if n < 1000}
    assert quarantined(conn) == 1000
    assert state(conn) == "up"
    assert one(conn, "select last_failure from pgcombine.destination") is None


def test_next_worker_continues_a_search(conn: psycopg.Connection, dsn: str, target: str) -> None:
    """What a worker quarantined before it died stays quarantined, and the next worker searches the other entries."""
    make_exported(conn, buckets=1, batch=10_000)
    combine(conn, {f"bad{number}": 1000 for number in range(3 * SEARCH_ENTRIES)})
    seen: set[object] = set()

    class Died(BaseException):
        pass

    def deliver(entries: list[Entry]) -> None:
        if len(entries) == 1:
            seen.add(entries[0].key)
        if len(seen) > 2 * SEARCH_ENTRIES:
            raise Died
        raise ValueError("refused")

    with pytest.raises(Died):
        ExportWorker(dsn, "search", deliver).drain()
    assert quarantined(conn) == 2 * SEARCH_ENTRIES
    assert len(rows(conn, "search_exports")) == SEARCH_ENTRIES
    seen.clear()
    ExportWorker(dsn, "search", deliver).drain()
    assert len(seen) == SEARCH_ENTRIES
    assert quarantined(conn) == 3 * SEARCH_ENTRIES


def test_worker_stops_at_a_destination_that_is_ahead(dsn: str, target: str, server: Server) -> None:
    """The destination ignores the lower sequences of a recreated server until ``own`` begins a new epoch."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        make_exported(conn, target)
        combine(conn, {f"w{number}": 1 for number in range(100)})
        worker_to(dsn, target).drain()
    with psycopg.connect(target) as there:
        late = [word for (word,) in there.execute("select word from search order by pgcombine_seq desc limit 3")]
    with server.migrated() as anew, psycopg.connect(anew, autocommit=True) as conn:
        make_exported(conn, target)
        impatient(conn)
        combine(conn, dict(zip(late, (5, 6, 7), strict=True)))
        with pytest.raises(
            DestinationDownError, match="only numbers up to 3: this server was restored from an older backup"
        ):
            worker_to(anew, target).drain()
        assert len(rows(conn, "search_exports")) == 3
        done = ownership.own(conn, "search")
        assert (done.owner, done.epoch) == ("", 1)
        worker_to(anew, target).drain()
        assert exported(target) == values(conn)
    # the destination ignores the former server's entries
    with psycopg.connect(dsn, autocommit=True) as conn:
        combine(conn, {"w1": 1})
        worker_to(dsn, target).drain()
        assert exported(target) == dict(zip(late, (5, 6, 7), strict=True))
        assert waiting(conn) == 0
        assert one(conn, "select count(*) from pgcombine.observer") == 0


def test_each_batch_that_the_table_ignores_is_checked(dsn: str, target: str, server: Server) -> None:
    """A batch may be ignored although the table isn't ahead for its keys. The next batch is checked all the same."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        make_exported(conn, target, buckets=1)
        combine(conn, *({word: 1} for word in "abc"))
        worker_to(dsn, target).drain()
    with server.migrated() as anew, psycopg.connect(anew, autocommit=True) as conn:
        make_exported(conn, target, buckets=1, batch=1)
        impatient(conn)
        combine(conn, {"a": 1}, {"c": 5})
        with pytest.raises(DestinationDownError, match="the number 3, but this server has drawn only numbers up to 2"):
            worker_to(anew, target).drain()
        assert waiting(conn) == 1


def test_late_worker_changes_nothing(conn: psycopg.Connection, dsn: str, target: str) -> None:
    """Entries that a late worker delivers after newer ones of their keys change nothing, also for a deleted key."""
    make_exported(conn, target)
    combine(conn, {"a": 1, "gone": 1})
    late = conn.execute(
        "select s.*, c._bucket from pgcombine.search_exports s join pgcombine.wc_changes c using (word)"
    ).fetchall()
    combine(conn, {"a": 1, "gone": -1})
    worker_to(dsn, target).drain()
    for word, _, new, seq, bucket in late:
        entry = json.dumps({"word": word, "new_n": new, "seq": seq})
        conn.execute(query("export_refused").encode(), ("search", bucket, "no", entry))
    assert one(conn, "select pgcombine_internal.export_release('search', null, true)") == 2
    worker_to(dsn, target).drain()
    assert exported(target) == values(conn) == {"a": 2}


@pytest.mark.wc
@embedded_only
@pytest.mark.parametrize("asks", [ASKED["cleartext"], ASKED["md5"]], ids=["cleartext", "md5"])
def test_hostile_target_gets_no_password(
    conn: psycopg.Connection, dsn: str, monkeypatch: pytest.MonkeyPatch, asks: bytes
) -> None:
    monkeypatch.setenv("PGPASSWORD", SECRET)
    with impostor(asks) as (port, told):
        make_export(conn, f"host=127.0.0.1 port={port} user=app dbname=app")
        impatient(conn)
        combine(conn, {"fluo": 1})
        with pytest.raises(DestinationDownError, match="authentication method requirement"):
            ExportWorker(dsn, "search", timeout=5).drain()
        with pytest.raises(ExportError):
            list(differences(conn, "search"))
    assert told
    assert all(b"user\0app" in start for start in told)  # only startup messages, no passwords
