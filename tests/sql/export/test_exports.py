"""Exports in SQL: their definitions, entries, buckets and removal."""

from __future__ import annotations

import psycopg
import pytest
from support.exports import make_export
from support.queues import add, called, combine_all, enqueue, make_queue, one, rows
from support.states import raises_state

from pgcombine.database.sqlfiles import query


def entries(conn: psycopg.Connection, export: str = "search") -> list[tuple[object, ...]]:
    """The pending entries in the order of their sequence numbers, without these numbers."""
    table = psycopg.sql.Identifier("pgcombine", f"{export}_exports")
    found = conn.execute(psycopg.sql.SQL("select * from {} order by seq").format(table)).fetchall()
    return [row[:-1] for row in found]


def taken(conn: psycopg.Connection, export: str = "search", limit: int = 100) -> list[tuple[object, ...]]:
    """Take entries of all buckets as a worker does, until there are none. Returns them without their numbers."""
    found = []
    while (bucket := one(conn, "select pgcombine_internal.claim_export(%s)", export)) is not None:
        call = "select pgcombine_internal.export_take(%s, %s, %s)"
        found += [row[:-2] for row in conn.execute(one(conn, call, export, bucket, limit).encode())]
    return found


@pytest.mark.wc
def test_every_change_is_an_entry(conn: psycopg.Connection) -> None:
    make_export(conn)
    for updates in ({"a": 1}, {"a": 2}, {"b": 1}, {"a": -3}):
        add(conn, updates)
        combine_all(conn)
    assert entries(conn) == [("a", None, 1), ("a", 1, 3), ("b", None, 1), ("a", 3, None)]
    assert one(conn, "select entries from pgcombine_internal.export_backlog('search')") == 4
    assert one(conn, "select lag_seconds >= 0 from pgcombine.export_stat") is True


def test_exports_of_a_queue_have_all_its_columns(conn: psycopg.Connection) -> None:
    make_queue(
        conn, "plain", key=["a int", '"B %" date'], value=["n int max", '"v %" text[] array_union'], delete_when=None
    )
    make_export(conn, queue="plain")
    make_export(conn, export="archive", queue="plain")
    enqueue(conn, [{"a": 1, "B %": "2024-02-29", "n": 7, "v %": ["x"]}], "plain")
    combine_all(conn, "plain")
    assert [str(row[1]) for row in entries(conn)] == ["2024-02-29"]
    assert [row[2:] for row in entries(conn, "archive")] == [(None, None, 7, ["x"])]
    for bucket in range(4):
        for found in conn.execute(one(conn, "select pgcombine_internal.export_take('search', %s, 9)", bucket).encode()):
            assert found[4:6] == (7, ["x"])
    assert entries(conn) == []


@pytest.mark.wc
def test_existing_values_are_exported_on_request(conn: psycopg.Connection) -> None:
    add(conn, {"a": 1, "b": 2})
    combine_all(conn)
    make_export(conn)
    make_export(conn, export="full", existing=True)
    assert entries(conn) == entries(conn, "full") == []
    pending = "select jsonb_object_agg(export, pending) from pgcombine.export_stat"
    assert one(conn, pending) == {"full": 2, "search": 0}
    assert taken(conn, "search") == []
    assert sorted(taken(conn, "full")) == [("a", None, 1), ("b", None, 2)]
    assert one(conn, pending) == {"full": 0, "search": 0}


@pytest.mark.wc(buckets=1)
def test_pass_with_an_older_snapshot_fails_to_serialize(conn: psycopg.Connection, dsn: str) -> None:
    """Otherwise the pass wouldn't see the new observer, and would write no entries."""
    add(conn, {"a": 1})
    with psycopg.connect(dsn, autocommit=True) as pass_:
        pass_.execute("begin isolation level repeatable read")
        pass_.execute("select 1")
        make_export(conn)
        with pytest.raises(psycopg.errors.SerializationFailure):
            pass_.execute("select pgcombine.combine('wc', 0)")
        pass_.execute("rollback")
    combine_all(conn)
    assert entries(conn) == [("a", None, 1)]


@pytest.mark.wc(buckets=1)
@pytest.mark.parametrize(("compact", "expected"), [(True, 2), (False, 5)])
def test_compaction_keeps_first_old_last_new_last_sequence(
    conn: psycopg.Connection, compact: bool, expected: int
) -> None:
    make_export(conn, compact=compact)
    for updates in ({"a": 1}, {"b": 1}, {"a": 2}, {"a": 3}, {"b": -1}):
        add(conn, updates)
        combine_all(conn)
    last = one(conn, "select max(seq) from pgcombine.search_exports")
    found = conn.execute(one(conn, "select pgcombine_internal.export_take('search', 0, 100)")).fetchall()
    assert len(found) == expected
    if compact:
        assert [row[:3] for row in found] == [("a", None, 6), ("b", None, None)]
        assert found[1][3] == last
    assert rows(conn, "search_exports") == []


@pytest.mark.wc(buckets=1)
def test_one_session_at_a_time_locks_a_bucket(conn: psycopg.Connection, dsn: str) -> None:
    claim = "select pgcombine_internal.claim_export('search')"
    make_export(conn)
    assert one(conn, claim) is None
    add(conn, {"a": 1})
    combine_all(conn)
    with psycopg.connect(dsn) as rival:
        assert one(rival, claim) == 0
        assert one(conn, claim) is None
    assert one(conn, claim) == 0


@pytest.mark.wc
def test_drop_export_needs_force_for_pending_entries(conn: psycopg.Connection) -> None:
    make_export(conn)
    add(conn, {"a": 1})
    combine_all(conn)
    for refused in ("drop_export('search')", "drop_queue('wc')"):
        with raises_state("PC005"):
            conn.execute(f"select pgcombine.{refused}")
    conn.execute("select pgcombine.drop_export('search', force => true)")
    assert one(conn, "select count(*) from pgcombine.destination") == 0
    add(conn, {"a": 1})
    combine_all(conn)
    make_export(conn)
    conn.execute("select pgcombine.drop_export('search'), pgcombine.drop_queue('wc')")


def test_exported_queue_is_dropped_only_with_force(conn: psycopg.Connection) -> None:
    """With force, the drop also removes the exports."""
    drop = "select pgcombine.drop_queue('wc'%s)"
    make_queue(conn)
    before = one(conn, "select count(*) from pg_class where relnamespace = 'pgcombine'::regnamespace")
    make_export(conn)
    make_export(conn, export="archive")
    add(conn, {"a": 1})
    combine_all(conn)
    with raises_state("PC005") as caught:
        conn.execute((drop % "").encode())
    assert "pgcombine export run archive --drain; pgcombine export drop archive" in str(caught.value.diag.message_hint)
    assert len(entries(conn)) == len(entries(conn, "archive")) == 1
    with raises_state(psycopg.errors.ForeignKeyViolation.sqlstate):
        conn.execute("delete from pgcombine.queue")
    conn.execute((drop % ", force => true").encode())
    for table in ("queue", "export", "export_bucket", "destination_state", "observer"):
        assert rows(conn, table) == []
    make_queue(conn)
    assert one(conn, "select count(*) from pg_class where relnamespace = 'pgcombine'::regnamespace") == before


@pytest.mark.wc
@pytest.mark.parametrize(
    ("options", "sqlstate"),
    [
        ({"queue": "nothing"}, "PC001"),
        ({"export": "Search"}, "PC003"),
        ({"export": "taken"}, "PC002"),
        ({"exporter": "pigeon"}, "PC003"),
        ({"exporter": "files"}, "PC003"),
        # The exporter ``files`` has no use for target_table.
        ({"exporter": "files", "target": "/tmp", "target_table": "t"}, "PC003"),
        ({"exporter": "postgres", "target": "host=a password=b"}, "PC003"),
        ({"exporter": "webhook", "target": "https://me:secret@host/"}, "PC003"),
        ({"exporter": "webhook", "target": "https://secret@host/"}, "PC003"),
        ({"exporter": "webhook", "target": "https://host/?a=b&token=secret"}, "PC003"),
        ({"exporter": "webhook", "target": "HTTPS://host/x?%74oke%6E=secret"}, "PC003"),
        ({"exporter": "webhook", "target": "http://host?X-Amz-Signature=secret"}, "PC003"),
        ({"exporter": "webhook", "target": "https://host/?apiKey=secret#x"}, "PC003"),
        ({"exporter": "webhook", "target": "https://host/?code=secret"}, "PC003"),
        ({"batch": 0}, "PC003"),
        ({"queue": "sequence"}, "PC003"),
    ],
)
def test_invalid_definitions_are_refused(conn: psycopg.Connection, options: dict[str, object], sqlstate: str) -> None:
    make_queue(conn, "sequence", key=["seq bigint"])
    make_export(conn, export="taken")
    with raises_state(sqlstate):
        make_export(conn, **options)
    assert one(conn, "select count(*) from pgcombine.export") == 1


@pytest.mark.wc
@pytest.mark.parametrize(
    "target", ["https://host/hook?tenant=5&author=me", "http://[::1]:80/a@b?zipcode=1", "https://host/token"]
)
def test_web_addresses_without_a_secret_are_accepted(conn: psycopg.Connection, target: str) -> None:
    make_export(conn, exporter="webhook", target=target)
    assert one(conn, "select target from pgcombine.export") == target


@pytest.mark.parametrize(
    "call",
    [
        *("drop_export('x')", "claim_export('x')", "export_take('x', 0, 1)", "export_target('x')"),
        *("pause_export('x')", "resume_export('x')", "export_release('x', null, true)", "export_backlog('x')"),
    ],
)
def test_unknown_exports_are_refused(conn: psycopg.Connection, call: str) -> None:
    with raises_state("PC021"):
        conn.execute(called(call))


@pytest.mark.wc
def test_flush_makes_commits_durable(conn: psycopg.Connection) -> None:
    """The query flush_commits makes earlier commits durable, even those with synchronous_commit = off."""
    conn.execute("set synchronous_commit = off")
    add(conn, {"a": 1})
    before = one(conn, "select pg_current_wal_insert_lsn()::text")
    conn.execute(query("flush_commits").encode())
    assert one(conn, "select pg_current_wal_flush_lsn() >= %s::pg_lsn", before) is True
    assert one(conn, "show synchronous_commit") == "off"


@pytest.mark.wc
def test_outdated_handover_changes_nothing(conn: psycopg.Connection) -> None:
    make_export(conn)
    one(conn, "select pgcombine_internal.own_export('search', 'a', 5)")
    add(conn, {"a": 1})
    combine_all(conn)
    conn.execute(
        "insert into pgcombine.export_entry (export, bucket, seq, entry, error) "
        "values ('search', 0, 0, '{}', 'refused')"
    )
    assert one(conn, "select pgcombine_internal.disown_export('search', 'b', 4)") is False
    assert entries(conn) == [("a", None, 1)]
    assert one(conn, "select count(*) from pgcombine.export_entry") == 1
    assert one(conn, "select pgcombine_internal.disown_export('search', 'b', 6)") is True
    assert one(conn, "select count(*) from pgcombine.export_entry") == 0


@pytest.mark.wc(buckets=1)
def test_export_made_in_an_older_snapshot_fails_to_serialize(conn: psycopg.Connection, dsn: str) -> None:
    """Otherwise the export would begin before changes that are truncated already, since the other export has them."""
    make_export(conn)
    with psycopg.connect(dsn) as old:
        old.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        old.execute("select")
        add(conn, {"a": 1})
        combine_all(conn)
        with pytest.raises(psycopg.errors.SerializationFailure):
            make_export(old, export="later")
