"""Each update counts once in a database that is restored from a dump, in the same or another cluster.

The stored ids of transactions mean nothing in the restored database, so enqueues are refused at first. The function
post_restore gives pending updates new ids.
"""

from __future__ import annotations

import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from support.audit import audit, audited, follow
from support.queues import add, combine_all, current, enqueue, make_queue, one, values, write_values
from support.servers import SETTINGS, Server, embedded, embedded_only
from support.sessions import in_background, workers
from support.states import raises_state
from support.wait import eventually

from pgcombine import Feed, schema
from pgcombine.embedded import programs
from pgcombine.errors import OffsetTooOldError, PostRestorePendingError
from pgcombine.queue import status as figures
from pgcombine.queue.combine_queue import CombineQueue
from pgcombine.worker import quarantine
from pgcombine.worker.drain import drain

WC = CombineQueue("wc")


def dumped(dsn: str, server: Server, *options: str) -> bytes:
    command = [programs.find(server.version).path("pg_dump"), *options, "--dbname", dsn]
    return subprocess.run(command, capture_output=True, check=True).stdout


@contextmanager
def loaded(dump: bytes, server: Server, *options: str) -> Iterator[str]:
    """Load a dump into a new database, and yield its URI."""
    with server.database() as copy:
        psql = programs.find(server.version).path("psql")
        load = [psql, "--quiet", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", *options, "--dbname", copy]
        subprocess.run(load, input=dump, capture_output=True, check=True)
        yield copy


@contextmanager
def restored(dsn: str, server: Server) -> Iterator[str]:
    """Dump ``dsn``, load the dump into a new database, and yield the new database's URI."""
    with loaded(dumped(dsn, server), server) as copy:
        yield copy


@pytest.fixture(scope="session")
def young(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A new cluster, whose transaction ids are lower than those in a dump."""
    home: Path = tmp_path_factory.mktemp("young")
    with embedded(home, SETTINGS) as dsn:
        server = Server("young", dsn)
        yield server
        server.close()


@pytest.fixture(params=["the same cluster", pytest.param("another cluster", marks=pytest.mark.slow)])
def target(request: pytest.FixtureRequest, server: Server) -> Server:
    """The server to which a dump is restored."""
    return server if request.param == "the same cluster" else request.getfixturevalue("young")


@embedded_only
@pytest.mark.parametrize(
    "options",
    [
        pytest.param((), id="by statements"),
        pytest.param(("--single-transaction",), marks=pytest.mark.slow, id="at once"),
    ],
)
@pytest.mark.parametrize(
    "layout",
    [pytest.param({"buckets": 1}, marks=pytest.mark.slow), {}, {"buckets": 6, "buckets_per_partition": 3}],
    ids=str,
)
def test_restored_queue_counts_each_update_once(
    conn: psycopg.Connection, dsn: str, server: Server, target: Server, layout: dict[str, int], options: tuple[str, ...]
) -> None:
    make_queue(conn, **layout)
    audit(conn)
    conn.execute("select pgcombine.create_feed('f', 'wc')")
    after = Feed("f").offset(conn)
    Feed("f").commit(conn, "consumer", after)
    add(conn, [(f"w{i}", 1) for i in range(50)])
    drain(dsn, "wc", timeout=60)
    # of these updates, only those of bucket 0 are combined before the dump
    add(conn, {"w0": 1, "new": 2})
    enqueue(conn, [{"word": f"w{i % 70}", "n": 1} for i in range(700)])
    conn.execute("select pgcombine.combine('wc', 0)")  # the mark of one bucket is newer than those of the others
    expected = Counter({f"w{i}": 10 + (i < 50) for i in range(70)}) + Counter(w0=1, new=2)
    pending = one(conn, "select pgcombine.backlog('wc')")
    assert 0 < pending < 702 or layout.get("buckets") == 1
    dumped_at = Feed("f").offset(conn)
    with loaded(dumped(dsn, server), target, *options) as copy:
        schema.check(copy)
        with psycopg.connect(copy, autocommit=True) as there:
            assert WC.verify(there) == []
            assert one(there, "select pgcombine.backlog('wc')") == pending
            assert one(there, "select sum(backlog) from pgcombine.status") == pending
            assert current(there) == expected
            with raises_state("PC012"):
                add(there, {"w0": 1})
            with pytest.raises(PostRestorePendingError):
                WC.enqueue(there, [("w1", 1)])
            with raises_state("PC012"):
                there.execute("select pgcombine.combine('wc')")
            assert Feed("f").offset(there) == dumped_at
            assert one(there, "select pgcombine.post_restore()") is True
            assert one(there, "select pgcombine.post_restore()") is False
            assert Feed("f").committed(there, "consumer") is None
            assert WC.verify(there) == []
            assert one(there, "select pgcombine.backlog('wc')") == pending
            assert one(there, "select count(*) from pgcombine.wc_updates") <= pending
            assert current(there) == expected
            add(there, {"w0": 1})
            WC.enqueue(there, [("w1", 1)])
            assert drain(copy, "wc", timeout=60).updates == pending + 2
            assert values(there) == expected + Counter(w0=1, w1=1)
            assert follow(audited(there)) == values(there)
            for too_old in (after, dumped_at):
                with pytest.raises(OffsetTooOldError):
                    Feed("f").offset(there, too_old)
            changes = {row["word"]: row["new_n"] for row in next(Feed("f").read(there, after={}, compact=True)).rows}
            assert values(there) == {w: n for w, n in expected.items() if w not in changes} | changes
            WC.rebucket(there, 3)
            assert WC.verify(there) == []
            there.execute("select pgcombine.drop_feed('f')")
            WC.drop(there)


@pytest.mark.wc
@embedded_only
def test_restored_queue_keeps_its_tokens(conn: psycopg.Connection, dsn: str, server: Server) -> None:
    assert WC.enqueue(conn, [("a", 1)], token="t") == 1
    with restored(dsn, server) as copy, psycopg.connect(copy, autocommit=True) as there:
        with pytest.raises(PostRestorePendingError):
            WC.enqueue(there, [("a", 10)], token="new")
        assert one(there, "select pgcombine.post_restore()") is True
        assert [WC.enqueue(there, [("a", 100)], token=token) for token in ("t", "new", "t")] == [0, 1, 0]
        assert current(there) == {"a": 101}


@pytest.mark.wc
@embedded_only
def test_restored_queue_keeps_its_contributions(conn: psycopg.Connection, dsn: str, server: Server) -> None:
    WC.contribute(conn, "s", [("a", 1), ("b", 2)])
    with restored(dsn, server) as copy, psycopg.connect(copy, autocommit=True) as there:
        assert one(there, "select pgcombine.post_restore()") is True
        assert WC.contribute(there, "s", [("b", 2), ("c", 3)]) == 2
        assert WC.contribute(there, "t", [("b", 1)]) == 1
        assert current(there) == {"b": 3, "c": 3}
        assert there.execute("select * from pgcombine.verify_contributions('wc')").fetchall() == []
        assert WC.verify(there) == []


@pytest.mark.wc
@embedded_only
def test_worker_runs_post_restore(conn: psycopg.Connection, dsn: str, server: Server) -> None:
    add(conn, {"a": 1, "b": 2})
    with restored(dsn, server) as copy, psycopg.connect(copy, autocommit=True) as there:

        def added() -> bool:
            try:
                add(there, {"a": 1})
            except psycopg.Error as error:
                if error.sqlstate != "PC012":
                    raise
                return False
            return True

        assert not added()
        with workers(copy, "wc", poll=0.05):
            eventually(added, what="post_restore has run")
            eventually(lambda: values(there) == {"a": 2, "b": 2}, what="the updates are combined")


@pytest.mark.wc
@embedded_only
def test_upgrade_runs_post_restore(conn: psycopg.Connection, dsn: str, server: Server) -> None:
    add(conn, {"a": 1})
    with restored(dsn, server) as copy, psycopg.connect(copy, autocommit=True) as there:
        schema.upgrade(copy)
        add(there, {"a": 1})
        combine_all(there)
        assert values(there) == {"a": 2}


@embedded_only
def test_post_restore_keeps_updates_that_the_log_refuses_now(
    conn: psycopg.Connection, dsn: str, server: Server
) -> None:
    """The queue's limit, and the fence of a moving shard, don't apply to updates that are in the log already."""
    triggers = (
        "select tgname, tgenabled from pg_trigger "
        "where tgrelid = 'pgcombine.wc_updates'::regclass and not tgisinternal order by 1"
    )
    make_queue(conn, max_backlog=1)
    add(conn, {"a": 1})
    conn.execute("select pgcombine_internal.fence_shard('wc', '{updates,values}')")
    conn.execute("alter table pgcombine.wc_updates disable trigger pgcombine_wake")
    with restored(dsn, server) as copy, psycopg.connect(copy, autocommit=True) as there:
        assert one(there, "select pgcombine.post_restore()") is True
        assert current(there) == {"a": 1}
        assert there.execute(triggers).fetchall() == conn.execute(triggers).fetchall()
        with raises_state("PC015"):
            add(there, {"a": 1})


@pytest.mark.wc
@embedded_only
def test_one_of_several_sessions_runs_post_restore(conn: psycopg.Connection, dsn: str, server: Server) -> None:
    add(conn, [(f"w{i}", 1) for i in range(100)])

    def post_restore() -> bool:
        with psycopg.connect(copy, autocommit=True) as there:
            return bool(one(there, "select pgcombine.post_restore()"))

    with restored(dsn, server) as copy, psycopg.connect(copy, autocommit=True) as there:
        with in_background(*[post_restore] * 4) as done:
            pass
        assert sorted(future.result() for future in done) == [False, False, False, True]
        combine_all(there)
        assert values(there) == {f"w{i}": 1 for i in range(100)}
        assert one(there, "select sum(updates) from pgcombine.pass") == 100


@pytest.mark.wc
@embedded_only
def test_post_restore_is_refused_during_a_restore(conn: psycopg.Connection, dsn: str, server: Server) -> None:
    add(conn, {"a": 1})
    with restored(dsn, server) as copy, psycopg.connect(copy, autocommit=True) as there:
        there.execute("drop trigger pgcombine_wake on pgcombine.wc_updates")
        with raises_state("PC012"):
            there.execute("select pgcombine.post_restore()")


@pytest.mark.wc
@embedded_only
def test_post_restore_needs_the_right_to_work(conn: psycopg.Connection, dsn: str, server: Server) -> None:
    with restored(dsn, server) as copy, psycopg.connect(copy, autocommit=True) as there:
        role = f"{there.info.dbname}_nobody"
        there.execute(f"create role {role}")
        try:
            there.execute(f"set role {role}")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                there.execute("select pgcombine.post_restore()")
            there.execute("reset role")
            there.execute("select pgcombine.grant_right('work', %s)", (role,))
            there.execute(f"set role {role}")
            assert one(there, "select pgcombine.post_restore()") is True
        finally:
            there.execute("reset role")
            there.execute(f"drop owned by {role}")
            there.execute(f"drop role {role}")


@embedded_only
def test_combined_hash_ranges_stay_combined(conn: psycopg.Connection, dsn: str, server: Server, target: Server) -> None:
    make_queue(conn, buckets=2, pass_limit=10)
    add(conn, [(f"w{i}", 1) for i in range(200)])
    for bucket in (0, 1, 0):
        conn.execute("select pgcombine.combine('wc', %s)", (bucket,))
    pending = one(conn, "select pgcombine.backlog('wc')")
    assert 0 < pending < 200
    with loaded(dumped(dsn, server), target) as copy, psycopg.connect(copy, autocommit=True) as there:
        assert drain(copy, "wc", timeout=60).updates == pending
        assert values(there) == {f"w{i}": 1 for i in range(200)}


@pytest.mark.wc
@embedded_only
def test_template_copy_needs_no_post_restore(conn: psycopg.Connection, dsn: str, server: Server) -> None:
    """A copy of a template is in the same cluster, so the stored ids of transactions stay valid."""
    add(conn, {"a": 1})
    combine_all(conn)
    add(conn, {"a": 1})
    name = conn.info.dbname
    conn.close()
    with server.database(template=name) as copy, psycopg.connect(copy, autocommit=True) as there:
        assert one(there, "select pgcombine.post_restore()") is False
        add(there, {"a": 1})
        combine_all(there)
        assert values(there) == {"a": 3}


def test_cluster_identity_needs_ids_of_two_transactions(conn: psycopg.Connection) -> None:
    """A restore writes both rows in one transaction, whose id may equal the id in one row, but not in both."""
    assert one(
        conn,
        "select bool_and(pgcombine_internal.own_cluster()) and count(distinct id::text) = 2"
        " from pgcombine.cluster_identity",
    )
    conn.execute("create table named as select place, id from pgcombine.cluster_identity")
    for place in (1, 2):
        with conn.transaction():
            conn.execute("truncate pgcombine.cluster_identity")
            conn.execute(
                """
                insert into pgcombine.cluster_identity
                select place, case place when %s then pg_current_xact_id()::xid else id end from named
                """,
                (place,),
            )
        assert not one(conn, "select pgcombine_internal.own_cluster()")
    conn.execute("truncate pgcombine.cluster_identity")
    assert not one(conn, "select pgcombine_internal.own_cluster()")


def test_the_cluster_identity_does_not_change(conn: psycopg.Connection) -> None:
    for change in (
        "update pgcombine.cluster_identity set id = '3'",
        "delete from pgcombine.cluster_identity where place = 2",
    ):
        with raises_state("PC012"):
            conn.execute(change.encode())
    with pytest.raises(psycopg.errors.UniqueViolation):
        conn.execute("insert into pgcombine.cluster_identity values (1, '3'), (2, '3')")


@pytest.mark.wc
@embedded_only
def test_session_detects_a_restore_of_data_alone(conn: psycopg.Connection, dsn: str, server: Server) -> None:
    """The session has checked the cluster identity before the restore."""
    add(conn, {"a": 1})
    combine_all(conn)
    add(conn, {"a": 1, "b": 1})
    dump = dumped(dsn, server, "--data-only", "--schema=pgcombine", "--disable-triggers")
    with psycopg.connect(dsn, autocommit=True) as pooled:
        add(pooled, {"a": 100})
        conn.execute(
            """
            do $$
            begin
                set local session_replication_role = replica; -- as in a dump with --disable-triggers
                execute (select 'truncate ' || string_agg(c.oid::regclass::text, ', ') from pg_class c
                         where c.relnamespace = 'pgcombine'::regnamespace and c.relkind in ('r', 'p'));
            end $$
            """
        )
        psql = programs.find(server.version).path("psql")
        load = [psql, "--quiet", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", "--dbname", dsn]
        subprocess.run(load, input=dump, capture_output=True, check=True)
        with raises_state("PC012"):
            add(pooled, {"a": 1})
        assert one(conn, "select pgcombine.post_restore()") is True
        add(pooled, {"a": 1})
    drain(dsn, "wc", timeout=60)
    assert values(conn) == {"a": 3, "b": 1}
    assert WC.verify(conn) == []


@pytest.mark.wc
@embedded_only
def test_post_restore_removes_foreign_ids(conn: psycopg.Connection, dsn: str, server: Server) -> None:
    """A session that sets the variable ``pgcombine.cluster_identity`` can store foreign ids before post_restore runs.

    Such a session may lose its own updates, but no others.
    """
    add(conn, {"a": 1})
    combine_all(conn)
    add(conn, {"b": 1})
    with restored(dsn, server) as copy, psycopg.connect(copy, autocommit=True) as there:
        there.execute(
            "select set_config('pgcombine.cluster_identity',"
            " pg_relation_filenode('pgcombine.cluster_identity')::text, false)"
        )
        add(there, {"mine": 1})
        foreign = "insert into pgcombine.wc_updates (word, n, pgcombine_tx) values ('mine', 1, 3)"
        there.execute(foreign)
        assert one(there, "select pgcombine.post_restore()") is True
        assert WC.verify(there) == []
        drain(copy, "wc", timeout=60)
        assert {word: n for word, n in values(there).items() if word != "mine"} == {"a": 1, "b": 1}
        with pytest.raises(psycopg.errors.CheckViolation):
            there.execute(foreign)


@embedded_only
def test_dump_beside_passes_is_consistent(conn: psycopg.Connection, dsn: str, server: Server) -> None:
    conn.execute("alter table pgcombine.queue alter segment_bits set default 5")
    make_queue(conn, buckets=2)
    conn.execute("create table public.written (word text, n bigint)")
    stop = threading.Event()

    def write() -> None:
        with psycopg.connect(dsn) as writer:
            number = 0
            while not stop.is_set():
                number += 1
                word = f"w{number % 50}"
                add(writer, {word: number})
                writer.execute("insert into public.written values (%s, %s)", (word, number))
                writer.commit()

    def combine() -> None:
        with psycopg.connect(dsn, autocommit=True) as worker:
            while not stop.is_set():
                worker.execute("select pgcombine.combine('wc')")
                worker.execute("call pgcombine.reclaim()")

    written = "select count(*) from public.written"
    truncated = "select txid_current() > 1000 and count(*) < %s from pgcombine.wc_updates"
    with in_background(write, write, combine):
        try:
            for least in (300, 600):
                eventually(lambda least=least: one(conn, written) > least, what="updates come")
                dump = dumped(dsn, server)
                eventually(lambda: one(conn, truncated, one(conn, written)), what="segments are truncated")
                with loaded(dump, server) as copy, psycopg.connect(copy, autocommit=True) as there:
                    expected = dict(there.execute("select word, sum(n) from public.written group by word").fetchall())
                    assert sum(expected.values()) > 0
                    assert current(there) == expected
                    drain(copy, "wc", timeout=60)
                    assert values(there) == expected
        finally:
            stop.set()


@embedded_only
def test_quarantined_keys_are_found_after_their_hash_changes(
    conn: psycopg.Connection, dsn: str, server: Server
) -> None:
    """PostgreSQL hashes an enum's label by its OID, which a restore changes."""
    conn.execute("create type public.color as enum ('red', 'green', 'blue')")
    make_queue(conn, key=["c public.color", "day date"], buckets=1, quarantine_after=1)
    conn.execute("create table public.forbidden (c text)")
    conn.execute(
        """
        create function public.look(c public.color) returns void language plpgsql as $$
        begin
            if c::text in (select f.c from public.forbidden f) then raise 'no %', c; end if;
        end $$
        """
    )
    conn.execute("select pgcombine.add_observer('wc', 'look', 'select public.look(c) from changes')")
    conn.execute("insert into public.forbidden values ('red'), ('green')")
    update = "insert into pgcombine.wc_updates select c, '2026-01-01', 1 from unnest(%s::public.color[]) c"
    conn.execute(update, (["red", "red", "green", "blue"],))
    drain(dsn, "wc", timeout=60)
    quarantined = {"red": 2, "green": 1}
    listed = "select key ->> 'c', updates from pgcombine.quarantine"
    assert dict(conn.execute(listed).fetchall()) == quarantined
    conn.execute("truncate public.forbidden")
    numbers = "select array_agg(oid order by enumsortorder) from pg_enum where enumtypid = 'public.color'::regtype"
    with restored(dsn, server) as copy, psycopg.connect(copy, autocommit=True) as there:
        there.execute("select pgcombine.post_restore()")
        assert one(there, numbers) != one(conn, numbers)
        assert (WC.verify(there), dict(there.execute(listed).fetchall())) == ([], quarantined)
        there.execute(update, (["red", "blue"],))
        assert [tuple(map(str, row)) for row in there.execute("select * from pgcombine.wc_current").fetchall()] == [
            ("blue", "2026-01-01", "2")
        ]
        combine_all(there)
        assert dict(there.execute(listed).fetchall()) == quarantined | {"red": 3}
        shown = "select c::text, n from pgcombine.wc_values"
        assert there.execute(shown).fetchall() == [("blue", 2)]

        assert quarantine.retry(there, "wc", {"c": "red", "day": "2026-01-01"}) == 3
        combine_all(there)
        assert dict(there.execute(shown).fetchall()) == {"blue": 2, "red": 3}
        assert quarantine.drop(there, "wc", {"c": "green", "day": "2026-01-01"}) == 1
        assert quarantine.ls(there) == []
        there.execute(update, (["green"],))
        combine_all(there)
        assert dict(there.execute(shown).fetchall()) == {"blue": 2, "red": 3, "green": 1}
        assert one(there, "select count(*) from pgcombine.wc_quarantine") == 0


# Key types whose hashes differ after a restore: the statement that creates the type, its name, and the format of a key.
REACH = "create type public.reach as range (subtype = public.color)"
PIXEL = "create type public.pixel as (at int, colors public.color[])"
RELATION = "create domain public.relation as regclass"
OTHER_HASHES = {
    "enum": ("", "public.color", "{}"),
    "composite": (PIXEL, "public.pixel", '(7,"{{{}}}")'),
    "array": ("", "public.color[]", "{{{}}}"),
    "range": (REACH, "public.reach", "[{0},{0}]"),
    "multirange": (REACH, "public.reach_multirange", "{{[{0},{0}]}}"),
    "object": ("", "regclass", "public.{}"),
    "domain": (RELATION, "public.relation", "public.{}"),
    "array of domain": (RELATION, "public.relation[]", "{{public.{}}}"),
}
LAYOUTS = {"buckets": {"buckets": 8}, "slices": {"buckets": 1, "pass_limit": 10}}


@embedded_only
@pytest.mark.parametrize(
    ("kind", "layout"),
    [
        *(("enum", layout) for layout in LAYOUTS),
        ("composite", "slices"),
        pytest.param("composite", "buckets", marks=pytest.mark.slow),
        *(pytest.param(kind, "slices", marks=pytest.mark.slow) for kind in list(OTHER_HASHES)[2:]),
    ],
)
def test_keys_that_change_buckets_count_once(
    conn: psycopg.Connection, dsn: str, server: Server, kind: str, layout: str
) -> None:
    """In a restored database keys have other hashes, and so other buckets or hash ranges."""
    labels = [f"c{i}" for i in range(60)]
    create, name, form = OTHER_HASHES[kind]
    conn.execute("create type public.color as enum ({})".format(", ".join(f"'{label}'" for label in labels)))
    conn.execute(create)
    if "public.{}" in form:
        for label in labels:
            conn.execute(f"create table public.{label} ()")
    make_queue(conn, key=[f"c {name}"], **LAYOUTS[layout])
    keys = [form.format(label) for label in labels]
    update = sql.SQL("insert into pgcombine.wc_updates select c::{}, 1 from unnest(%s::text[]) c").format(sql.SQL(name))
    conn.execute(update, (keys,))
    for bucket in (0, 0, 0) if layout == "slices" else range(4):
        conn.execute("select pgcombine.combine('wc', %s)", (bucket,))
    pending = one(conn, "select pgcombine.backlog('wc')")
    assert 0 < pending < 60
    # If the key is an enum, pg_dump loads via the partition root even without the option.
    dump = dumped(dsn, server, *([] if kind == "enum" else ["--load-via-partition-root"]))
    with loaded(dump, server) as copy, psycopg.connect(copy, autocommit=True) as there:
        there.execute("select pgcombine.post_restore()")
        assert one(there, "select pgcombine.backlog('wc')") == pending
        there.execute(update, (keys,))
        combine_all(there)
        assert WC.verify(there) == []
        there.execute("set search_path = pg_catalog")
        assert dict(there.execute("select c::text, n from pgcombine.wc_values").fetchall()) == {
            one(there, f"select %s::{name}::text", key): 2 for key in keys
        }


def readings(conn: psycopg.Connection) -> dict[str, object]:
    """The results of reading the queue wc: its values, views, SQL functions and Python calls."""
    names = (
        "select c.relname::text from pg_class c where c.relkind in ('v', 'p')"
        " and c.relnamespace = 'pgcombine'::regnamespace and c.relname ~ '^wc_(?!updates)' order by 1"
    )
    found: dict[str, object] = {}
    for (name,) in conn.execute(names).fetchall():
        relation = sql.Identifier("pgcombine", name)
        found[name] = sorted(map(str, conn.execute(sql.SQL("select x::text from {} x").format(relation)).fetchall()))
    for key in ("c3", "c17"):
        by_key = sql.SQL("select n from pgcombine.{} where c = {}")
        for name in ("wc_current", "wc_values", "wc_pending"):
            statement = by_key.format(sql.Identifier(name), sql.Literal(key))
            found[f"{name} of {key}"] = sorted(conn.execute(statement).fetchall())
    found |= {
        "get": {str(key): n for key, n in WC.get(conn, ["c3", "c17", "c40"]).items()},
        "backlog()": one(conn, "select pgcombine.backlog('wc')"),
        "backlog": WC.backlog(conn),
        "status": one(conn, "select backlog from pgcombine.status"),
        "exact": figures.status(conn, fresh=True)[0]["backlog"],
        "queue_stat": one(conn, "select pending from pgcombine.queue_stat"),
        "bucket_stat": one(conn, "select sum(pending) from pgcombine.bucket_stat"),
        "verify": WC.verify(conn),
        "for Spark": sum(
            one(conn, f"select count(*) from {relation} where {condition}")  # noqa: S608
            for relation, condition in conn.execute("select * from pgcombine_internal.values_tables('wc')").fetchall()
        ),
    }
    return found


@embedded_only
@pytest.mark.parametrize("layout", [*LAYOUTS.values(), {"buckets": 6, "buckets_per_partition": 3}], ids=str)
def test_reads_before_post_restore_are_right(
    conn: psycopg.Connection, dsn: str, server: Server, layout: dict[str, int]
) -> None:
    """In the restored database the keys have other hashes, and so other buckets or hash ranges."""
    labels = [f"c{i}" for i in range(60)]
    conn.execute("create type public.color as enum ({})".format(", ".join(f"'{label}'" for label in labels)))
    make_queue(conn, key=["c public.color"], **layout)
    update = "insert into pgcombine.wc_updates select c, 1 from unnest(%s::public.color[]) c"
    conn.execute(update, (labels * 3,))
    conn.execute("select pgcombine.combine('wc', 0)")
    conn.execute(update, (labels[:48],))
    conn.execute("select pgcombine.combine('wc', %s)", (layout["buckets"] // 2,))
    expected = readings(conn)
    assert 0 < WC.backlog(conn) < 228
    assert one(conn, "select sum(n) from pgcombine.wc_current") == 228
    with restored(dsn, server) as copy, psycopg.connect(copy, autocommit=True) as there:
        assert readings(there) == expected
        with raises_state("PC012"):
            there.execute("call pgcombine.wait('wc', '1 s')")
        there.execute("select pgcombine.post_restore()")
        assert readings(there) == expected


@embedded_only
def test_keys_expire_in_a_restored_database(conn: psycopg.Connection, dsn: str, server: Server) -> None:
    make_queue(conn, delete_when=None)
    write_values(conn, "insert into pgcombine.wc_values select g::text, g % 2 from generate_series(1, 100) g")
    conn.execute("select pgcombine.set_expiry('wc', 'n <= 1')")
    conn.execute("update pgcombine.expiry set page = 99999 where bucket = 0")
    add(conn, {"new": 2, "late": 1, "1": 1})
    with restored(dsn, server) as copy, psycopg.connect(copy, autocommit=True) as there:
        with raises_state("PC012"):
            there.execute("call pgcombine.expire('wc')")
        there.execute("select pgcombine.post_restore()")
        assert one(there, "call pgcombine.expire('wc')") == 99
        combine_all(there)
        assert values(there) == {"new": 2, "1": 2}
        assert WC.verify(there) == []
