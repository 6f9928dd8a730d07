"""The monitoring views: their estimates and rates compared with exact counts, and the rows that each role sees."""

from __future__ import annotations

import re
from importlib import resources
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import dict_row
from support.queues import add, combine_all, hold, make_queue, one, pass_time, rows, word_in
from support.states import raises_state

DOCS = resources.files("pgcombine").joinpath("docs")
STATS = [
    *("queue_stat", "bucket_stat", "minute_stat", "pass_recent", "export_stat", "hint_stat", "load_stat"),
    *("feed_stat", "oldest_snapshot", "segment_stat", "table_size"),
]


def view_rows(conn: psycopg.Connection, view: str, where: str = "true") -> list[dict[str, object]]:
    """The rows of a view that meet the condition ``where``, as dictionaries."""
    return conn.cursor(row_factory=dict_row).execute(f"select * from pgcombine.{view} where {where}").fetchall()  # noqa: S608


def fresh(conn: psycopg.Connection, view: str, where: str = "true") -> list[dict[str, object]]:
    conn.execute("delete from pgcombine.sample")
    return view_rows(conn, view, where)


def queue_stat(conn: psycopg.Connection, queue: str = "wc") -> dict[str, object]:
    (found,) = fresh(conn, "queue_stat", f"queue = '{queue}'")
    return found


def fill(conn: psycopg.Connection, updates: int, queue: str = "wc") -> None:
    insert = sql.SQL("insert into {} select 'w' || i %% 1000, 1 from generate_series(1, %s) i")
    conn.execute(insert.format(sql.Identifier("pgcombine", f"{queue}_updates")), (updates,))


def test_reference_lists_every_column(tx: psycopg.Connection) -> None:
    views = tx.execute(
        "select c.relname, array_agg(a.attname::text order by a.attnum)"
        " from pg_class c join pg_attribute a on a.attrelid = c.oid"
        " where c.relnamespace = 'pgcombine'::regnamespace and c.relkind = 'v' and a.attnum > 0"
        " and c.relname not like 'every\\_%' group by 1"
    ).fetchall()
    assert {*STATS, "worker", "status"} < {name for name, _ in views}
    page = DOCS.joinpath("reference", "sql.md").read_text(encoding="utf-8").partition("\n## Views\n")[2]
    sections = re.findall(r"^### (\w+)\n((?:(?!##).*\n)*)", page, re.MULTILINE)
    assert {name: re.findall(r"^- `(\w+)`: ", text, re.MULTILINE) for name, text in sections} == dict(views)


def test_page_names_the_expensive_views(tx: psycopg.Connection) -> None:
    page = DOCS.joinpath("monitoring.md").read_text(encoding="utf-8")
    (named,) = re.findall(r"^- The views (.*) read each row", page, re.MULTILINE)
    names = "select relname from pg_class where relnamespace = 'pgcombine'::regnamespace and relkind = 'v'"
    views = {name for (name,) in tx.execute(names) if not name.startswith("every_")}
    assert set(re.findall(r"`(\w+)`", named)) == views - {
        *STATS,
        "worker",
        "destination",
        "export_stat",
        "rights",
        "front_stat",
        "shard_definition",
    }


def test_backlog_is_exact(tx: psycopg.Connection) -> None:
    """Also of hash ranges, and of buckets that share a partition."""
    make_queue(tx, buckets=4, buckets_per_partition=2, pass_limit=5_000)
    assert queue_stat(tx)["pending"] == 0
    add(tx, {word_in(tx, 1): 1, word_in(tx, 1, start=500): 1, word_in(tx, 3): 1})
    assert queue_stat(tx)["pending"] == 3
    assert [found["pending"] for found in sorted(fresh(tx, "bucket_stat"), key=lambda b: b["bucket"])] == [0, 2, 0, 1]
    fill(tx, 60_000)
    assert queue_stat(tx)["pending"] == 60_003
    tx.execute("select pgcombine.combine('wc', 1)")
    assert queue_stat(tx)["pending"] == one(tx, "select pgcombine.backlog('wc')") < 60_000
    combine_all(tx)
    assert queue_stat(tx)["pending"] == 0
    add(tx, {"a": 1})
    assert queue_stat(tx)["pending"] == 1


@pytest.mark.wc
def test_lag_is_the_age_of_the_oldest_update(conn: psycopg.Connection) -> None:
    make_queue(conn, "other")
    assert queue_stat(conn)["lag_seconds"] == 0
    add(conn, {"old": 1})
    pass_time(conn, 3600)
    add(conn, {"new": 1})
    assert queue_stat(conn)["lag_seconds"] == pytest.approx(3600, abs=60)
    assert max(found["lag_seconds"] for found in fresh(conn, "bucket_stat")) == pytest.approx(3600, abs=60)
    assert queue_stat(conn, "other")["lag_seconds"] == 0
    conn.execute("select pgcombine.pause('wc')")
    found = queue_stat(conn)
    assert (found["paused"], found["pending"], found["lag_seconds"]) == (True, 2, pytest.approx(3600, abs=60))
    assert max(bucket["lag_seconds"] for bucket in fresh(conn, "bucket_stat")) == pytest.approx(3600, abs=60)
    conn.execute("select pgcombine.resume('wc')")
    combine_all(conn)
    assert queue_stat(conn)["lag_seconds"] == 0


@pytest.mark.wc(buckets=1)
def test_reading_the_view_dates_pending_updates(conn: psycopg.Connection) -> None:
    """Reading queue_stat records a time, by which later reads date the pending updates."""
    add(conn, {"a": 1})
    assert queue_stat(conn)["lag_seconds"] < 60
    pass_time(conn, 3600)
    conn.execute("update pgcombine.sample set at = clock_timestamp()")
    assert view_rows(conn, "queue_stat")[0]["lag_seconds"] == pytest.approx(3600, abs=60)
    assert view_rows(conn, "bucket_stat")[0]["lag_seconds"] == pytest.approx(3600, abs=60)
    combine_all(conn)
    assert view_rows(conn, "queue_stat")[0]["lag_seconds"] == 0
    assert view_rows(conn, "bucket_stat")[0]["lag_seconds"] == 0


@pytest.mark.wc
def test_quarantined_updates_have_no_lag(conn: psycopg.Connection) -> None:
    add(conn, [("bad", 1), ("bad", 1)])
    pass_time(conn, 3600)
    hold(conn, word="bad")
    found = queue_stat(conn)
    figures = [
        found[name] for name in ("pending", "lag_seconds", "quarantined_keys", "quarantined_updates", "failing_buckets")
    ]
    assert figures == [0, 0, 1, 2, 0]


@pytest.mark.wc
def test_views_show_failing_buckets(conn: psycopg.Connection) -> None:
    add(conn, {word_in(conn, 2): 1})
    conn.execute("select pgcombine_internal.fail_pass('wc', 2, '22003', 'a value')")
    assert queue_stat(conn)["failing_buckets"] == 1
    (failing,) = fresh(conn, "bucket_stat", "failures > 0")
    assert (failing["bucket"], failing["failures"], failing["sqlstate"], failing["pending"]) == (2, 1, "22003", 1)
    assert failing["failing_since"] < failing["retry_at"]
    assert "a value" not in str(failing)


@pytest.mark.wc(buckets=1)
def test_rates_are_those_of_the_passes(conn: psycopg.Connection) -> None:
    idle = queue_stat(conn)
    assert (idle["passes_1m"], idle["pass_seconds_p50"], idle["last_pass_at"]) == (0, None, None)
    add(conn, [("a", 1), ("a", 1), ("b", 1), ("c", 0)])
    combine_all(conn)
    add(conn, [("a", 1)])
    combine_all(conn)
    # The update of c is 0 and changes nothing.
    expected = {"updates": 5, "keys": 4, "changes": 3}
    found = queue_stat(conn)
    for name, count in expected.items():
        assert found[f"{name}_per_second_1m"] == pytest.approx(count / 60)
    conn.execute("update pgcombine.pass set began = ended - interval '1 s' * pass where pass > 0")
    found = queue_stat(conn)
    assert (found["passes_1m"], found["pass_seconds_p50"], found["pass_seconds_p99"]) == (2, 1, 2)
    assert found["last_pass_at"] == one(conn, "select max(ended) from pgcombine.pass")


@pytest.mark.wc(buckets=1)
def test_minute_stat_counts_each_pass_once(conn: psycopg.Connection) -> None:
    for minutes in (20, 5, 4, 0):
        add(conn, [("a", 1)] * 9)
        combine_all(conn)
        conn.execute(
            "update pgcombine.pass set ended = ended - make_interval(mins => %s)"
            " where pass = (select max(pass) from pgcombine.pass)",
            (minutes,),
        )
    for _ in range(3):
        assert queue_stat(conn)["passes_1m"] == 1
        conn.execute("select pgcombine_internal.trim_journal('wc')")
    assert [minute[2:4] for minute in rows(conn, "pass_minute")][:3] == [(1, 9)] * 3
    assert rows(conn, "minute_stat") == rows(conn, "pass_minute")


def test_pass_recent_shows_the_last_passes(tx: psycopg.Connection) -> None:
    make_queue(tx, buckets=1, pass_limit=10)
    fill(tx, 100)
    done = combine_all(tx)
    add(tx, {"a": 1})
    combine_all(tx)
    found = sorted(view_rows(tx, "pass_recent"), key=lambda each: -each["pass"])
    assert (found[0]["updates"], found[0]["keys"], found[0]["changes"], found[0]["hash_ranges"]) == (1, 1, 1, 1)
    assert len(found) == min(10, len(done) + 1)
    assert max(each["hash_ranges"] for each in found) > 1
    assert all(each["seconds"] >= 0 and each["ended"] >= each["began"] for each in found)


@pytest.mark.wc
def test_export_stat_shows_backlog_and_state(conn: psycopg.Connection) -> None:
    conn.execute("select pgcombine.create_export('words', 'wc')")
    (found,) = view_rows(conn, "export_stat")
    assert (found["export"], found["state"], found["pending"], found["lag_seconds"], found["delivered"]) == (
        "words",
        "up",
        0,
        0,
        0,
    )
    add(conn, {f"w{i}": 1 for i in range(50)})
    combine_all(conn)
    conn.execute("update pgcombine.wc_changes set _commit_timestamp = _commit_timestamp - interval '1 h'")
    (found,) = view_rows(conn, "export_stat")
    assert (found["pending"], found["lag_seconds"]) == (50, pytest.approx(3600, abs=60))
    conn.execute("select pgcombine.pause_export('words')")
    (found,) = view_rows(conn, "export_stat")
    assert (found["state"], found["pending"], found["lag_seconds"]) == ("paused", 50, pytest.approx(3600, abs=60))


@pytest.mark.wc
def test_hint_stat_counts_writes_and_updates(conn: psycopg.Connection) -> None:
    conn.execute("select pgcombine_internal.handoff_handshake('a')")
    for server in ("b", "c"):
        conn.execute("select pgcombine_internal.handoff_register(%s, 'host=b user=app')", (server,))
    conn.execute(
        "insert into pgcombine.handoff_hint (destination, token, queue, shape, digest, updates, payload, since)"
        " select 'b', ('00000000-0000-7000-8000-' || to_char(i, 'FM000000000000'))::uuid, 'wc',"
        " gen_random_uuid(), gen_random_uuid(), 3, '{}', now() - interval '1 s' * (1000 - i)"
        " from generate_series(1, 150) i"
    )
    found = {each["destination"]: each for each in view_rows(conn, "hint_stat")}
    assert (found["b"]["writes"], found["b"]["updates"]) == (150, 450)
    assert found["b"]["oldest_seconds"] == pytest.approx(999, abs=60)
    assert (found["c"]["writes"], found["c"]["updates"], found["c"]["oldest"], found["c"]["oldest_seconds"]) == (
        0,
        0,
        None,
        0,
    )


def test_load_stat_shows_open_loads(tx: psycopg.Connection, role: str) -> None:
    make_queue(tx)
    load = uuid4()
    stage = one(tx, "select pgcombine_internal.begin_load(%s, 'wc', 'run 1')", load)
    insert = sql.SQL("insert into {} (word, n) select 'w' || i, 1 from generate_series(1, 700) i")
    tx.execute(insert.format(sql.Identifier("pgcombine", stage)))
    tx.execute("select pg_stat_force_next_flush()")
    tx.execute("select")
    (first,) = view_rows(tx, "load_stat")
    assert (first["run_id"], first["kind"], first["rows"], first["ended"]) == ("run 1", "stage", 700, False)
    assert first["bytes"] > 0
    tx.execute(f"grant select on pgcombine.wc_values to {role}; set role {role}")
    with raises_state("42501"):
        view_rows(tx, "load_stat")


@pytest.mark.wc(buckets=2)
def test_segment_stat_and_table_size_are_exact(conn: psycopg.Connection) -> None:
    (empty,) = fresh(conn, "segment_stat")
    assert (empty["segments"], empty["filled"], empty["waiting"], empty["waiting_bytes"]) == (8, 0, 0, 0)
    fill(conn, 400_000)
    (found,) = fresh(conn, "segment_stat")
    assert (found["filled"], found["waiting"]) == (2, 0), "the segments have pending updates"
    combine_all(conn)
    (found,) = fresh(conn, "segment_stat")
    assert (found["filled"], found["waiting"]) == (2, 2)
    assert found["bytes"] == one(
        conn, "select sum(pg_table_size(relid)) from pg_partition_tree('pgcombine.wc_updates') where isleaf"
    )
    assert found["waiting_bytes"] > 0.99 * found["bytes"]
    sizes = {each["table"]: each for each in fresh(conn, "table_size")}
    assert {"wc_updates", "wc_values", "wc_quarantine", "wc_quarantine_keys", "pass", "tick"} <= sizes.keys()
    assert sizes["wc_updates"]["bytes"] == found["bytes"]
    for what, function in (("bytes", "pg_table_size"), ("index_bytes", "pg_indexes_size")):
        exact = one(conn, f"select sum({function}(relid)) from pg_partition_tree('pgcombine.wc_values') where isleaf")  # noqa: S608
        assert sizes["wc_values"][what] == exact > 0
    conn.execute("call pgcombine.reclaim('wc')")
    (after,) = fresh(conn, "segment_stat")
    assert (after["filled"], after["waiting"], after["bytes"]) == (0, 0, empty["bytes"])


def test_only_monitors_and_workers_read_the_views(tx: psycopg.Connection, role: str) -> None:
    make_queue(tx)
    for right in (None, "monitor", "work"):
        if right:
            tx.execute("select pgcombine.grant_right(%s, %s)", (right, role))
        else:
            tx.execute(f"grant select on pgcombine.wc_values, pgcombine.wc_current to {role}")
        tx.execute(f"set role {role}")
        for view in STATS:
            if view == "oldest_snapshot" or right:
                view_rows(tx, view)
            else:
                with raises_state("42501"), tx.transaction():
                    view_rows(tx, view)
        tx.execute("reset role")
        if right:
            tx.execute("select pgcombine.revoke_right(%s, %s)", (right, role))


@pytest.mark.wc
def test_views_work_in_a_read_only_transaction(conn: psycopg.Connection) -> None:
    add(conn, {"a": 1})
    with conn.transaction():
        conn.execute("set transaction read only, isolation level repeatable read")
        for view in STATS:
            view_rows(conn, view)
        assert view_rows(conn, "queue_stat")[0]["pending"] == 1
    assert rows(conn, "sample") == []


@pytest.mark.wc
def test_figures_are_kept_for_a_second(conn: psycopg.Connection) -> None:
    assert queue_stat(conn)["pending"] == 0
    conn.execute("update pgcombine.sample set at = clock_timestamp() + interval '1 hour'")
    add(conn, {"a": 1})
    assert view_rows(conn, "queue_stat")[0]["pending"] == 0
    with conn.transaction():
        conn.execute("set local pgcombine.fresh = on")
        assert view_rows(conn, "queue_stat")[0]["pending"] == 1
    conn.execute("update pgcombine.sample set at = clock_timestamp() + interval '1 hour', figures = '[]'")
    assert view_rows(conn, "queue_stat")[0]["pending"] == 0
    conn.execute("update pgcombine.sample set at = clock_timestamp() - interval '61 seconds', seconds = 1000")
    assert view_rows(conn, "queue_stat")[0]["pending"] == 1


@pytest.mark.wc(buckets=1)
def test_a_lock_on_a_queue_stops_no_reader(conn: psycopg.Connection) -> None:
    make_queue(conn, "other", buckets=1)
    add(conn, {"a": 1})
    with psycopg.connect(conn.info.dsn, password=conn.info.password) as holder:
        holder.execute("lock table pgcombine.wc_updates in access exclusive mode")
        add(conn, {"a": 1}, "other")
        found = {each["queue"]: (each["pending"], each["pending_at"] is None) for each in fresh(conn, "queue_stat")}
        assert found == {"wc": (0, True), "other": (1, False)}
        # An update since the last sample may be as old as that sample.
        conn.execute(
            "insert into pgcombine.sample (queue, kind, at, figures)"
            " values ('wc', 'pending', now() - interval '5 minutes', '[]')"
        )
        (locked,) = view_rows(conn, "queue_stat", "queue = 'wc'")
        assert locked["lag_seconds"] == pytest.approx(300, abs=60)
    assert queue_stat(conn)["pending"] == 1
