"""Rollups with the option ``keep``: rows that meet the condition stay counted when they go.

``Kept`` runs statements on a source and remembers the rows that are kept, so that the view must equal the query of the
source and these rows.
"""

# ruff: noqa: S608

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import psycopg
import pytest
from support.mutants import mutate_functions
from support.queues import one
from support.rollups import Rollup
from support.servers import embedded_only
from support.sessions import in_background, workers
from support.states import raises_state

SUMS = ["count(*) as n", "sum(v) as v", "avg(w) as w", "variance(v) as var", "count(v) filter (where id % 3 = 0) as c"]
ROUNDED = {name: f"round({name}, 8)" for name in ("w", "var")}
KEEP = "v % 2 = 0 and now() > '2000-01-01'"
COLUMNS = "id int, part int, k text, v int, w numeric"
SHAPES = {
    "plain": f"create table src ({COLUMNS})",
    "heirs": f"create table src ({COLUMNS}); create table heir () inherits (src); create table p1 () inherits (heir)",
    "partitioned": f"""
        create table src ({COLUMNS}) partition by list (part);
        create table p0 partition of src for values in (0);
        create table p1 partition of src for values in (1);
        create table p2 partition of src for values in (2, 3) partition by list (part);
        create table p22 partition of p2 for values in (2);
        create table p23 (w numeric, v int, k text, part int, id int);
        alter table p2 attach partition p23 for values in (3)""",
}


@dataclass
class Kept:
    conn: psycopg.Connection
    rollup: Rollup

    @classmethod
    def make(cls, conn: psycopg.Connection, shape: str, value: list[str] | None = None, **options: Any) -> Kept:
        conn.execute("set search_path = public")
        conn.execute(f"{SHAPES[shape]}; create table archive ({COLUMNS})".encode())
        rollup = Rollup.make(conn, value or SUMS, rounded=ROUNDED, **{"keep": KEEP} | options)
        all_rows = f"(select {'id, part, k, v, w'} from src union all table archive) as src"
        return cls(conn, replace(rollup, query=rollup.query.replace("from src", f"from {all_rows}")))

    def insert(self, numbers: range, name: str = "src") -> None:
        rows = ", ".join(f"({n}, {n % 4}, '{'abc'[n % 3]}', {n * 3 // 4}, {n / 4})" for n in numbers)
        self.conn.execute(f"insert into {name} (id, part, k, v, w) values {rows}".encode())

    def run(self, statement: str) -> None:
        """Run a statement, and remember the rows that it has removed."""
        before = f"select id, part, k, v, w from src where {KEEP}"
        self.conn.execute(f"create temporary table before as {before}".encode())
        self.conn.execute(statement.encode())
        gone = "select * from before b where not exists (select from src where id = b.id)"
        self.conn.execute(f"insert into archive {gone}".encode())
        self.conn.execute("drop table before")

    def check(self, what: object = None) -> None:
        assert self.rollup.differing(self.conn) == [], what
        assert self.rollup.verify(self.conn) == [], what


@pytest.mark.parametrize("shape", SHAPES)
def test_sums_equal_those_of_all_rows_but_deleted_ones_that_are_not_kept(tx: psycopg.Connection, shape: str) -> None:
    """The first series of statements has a fixed seed, the second one a random seed."""
    for seed in 1, random.randrange(10**6):
        run_statements(tx, shape, seed)
        tx.execute("select pgcombine.drop_rollup('r'); drop schema public cascade; create schema public")


def run_statements(conn: psycopg.Connection, shape: str, seed: int) -> None:
    chance = random.Random(seed)
    kept = Kept.make(conn, shape, filter=chance.choice([None, "id % 7 <> 3"]))
    number = 0
    ready = False
    for _ in range(25):
        rest = f"id % {chance.randint(2, 5)} = {chance.randrange(3)}"
        name = chance.choice(["src", "src", "p1" if shape != "plain" else "src"])
        part = f"part = {1 if name == 'p1' else chance.randrange(4)}"
        kind = chance.choice(["insert", "update", "move", "delete", "merge", "combine"] * 3 + ["truncate"])
        if kind == "insert":
            numbers = range(number, number := number + chance.randint(1, 9))
            kept.insert(numbers, name if shape == "heirs" else "src")
        elif kind == "combine":
            kept.rollup.call(conn, chance.choice(["drain", "backfill"]))
            ready = kept.rollup.ready(conn)
        else:
            statement = {
                "update": f"update {name} set v = v + 1, k = 'd' where {rest}",
                "move": f"update src set {part}, v = v + {chance.randrange(2)} where {rest}",
                "delete": f"delete from {name} where {rest}",
                "truncate": f"truncate {name}",
                "merge": f"merge into src using (values (1), (2)) s (part) on src.part = s.part and {rest}"
                " when matched then update set part = 3 - s.part, v = v + 2",
            }[kind]
            kept.run(statement)
        if ready:
            assert kept.rollup.differing(conn) == [], f"seed {seed}: {kind}"
    kept.rollup.call(conn, "backfill", "drain")
    kept.check(f"seed {seed}")


@pytest.fixture
def parts(tx: psycopg.Connection) -> Kept:
    """A source with the rows 0 to 11 in partitions; the rollup is backfilled."""
    kept = Kept.make(tx, "partitioned")
    kept.insert(range(12))
    kept.rollup.call(tx, "backfill", "drain")
    return kept


DETACHED = {
    "detach": "alter table src detach partition p1",
    "detach a table with partitions": "alter table src detach partition p2",
    "detach concurrently": "alter table src detach partition p0 concurrently",
    "truncate a partition": "truncate p2",
    "truncate all": "truncate src",
    "delete by the name of the partition": "delete from p22",
}


@pytest.mark.parametrize("what", DETACHED)
def test_rows_of_partitions_are_kept(parts: Kept, what: str) -> None:
    parts.run(DETACHED[what])
    parts.check()
    parts.rollup.call(parts.conn, "drain")
    parts.check()
    assert one(parts.conn, "select sum(n_kept) from pgcombine.r_values") == one(
        parts.conn, "select count(*) from archive"
    )


@pytest.mark.parametrize("moment", ["before", "after"])
def test_partition_that_is_detached_without_event_triggers_is_kept_by_repair(parts: Kept, moment: str) -> None:
    parts.conn.execute("drop event trigger pgcombine_follow_ddl; drop event trigger pgcombine_follow_drop")
    if moment == "before":  # rows may also go before
        parts.run("delete from p1 where id = 1; delete from src where id = 5")
    parts.run("alter table src detach partition p1; alter table src detach partition p2")
    assert any("p1 is no part of" in problem for problem in parts.rollup.verify(parts.conn))
    assert parts.rollup.verify(parts.conn, repair=True)
    parts.check()
    assert parts.rollup.verify(parts.conn, repair=True) == []
    parts.conn.execute("truncate p1; drop table p1, p2")
    parts.check()


def test_partition_is_not_dropped_before_it_is_detached(parts: Kept) -> None:
    with raises_state("PC003") as refused:
        parts.conn.execute("drop table p1")
    assert "detach it first" in str(refused.value.diag.message_hint)
    parts.run("alter table src detach partition p1; drop table p1")
    parts.check()


MOVES = {
    "an update": "update src set part = 2 - part",
    "an update of a part": "insert into author values (3); update p2 set part = 3",
    "a merge": "merge into src using (values (0)) s (part) on src.part = s.part when matched then update set part = 1",
    "a cascade": "update author set id = 3 where id = 2",
    "a subtransaction": "do $$ begin update src set part = 1; perform 1 / 0; exception when others then null; end $$",
}


@pytest.mark.parametrize("what", MOVES)
def test_row_that_moves_to_another_partition_counts_once(parts: Kept, what: str) -> None:
    conn = parts.conn
    parts.run("delete from src where part = 3")
    conn.execute("create table author (id int primary key); insert into author select generate_series(0, 2)")
    conn.execute("alter table src add foreign key (part) references author on update cascade")
    parts.run(MOVES[what])
    parts.check()
    parts.run("delete from src where id < 8")
    parts.check()
    assert one(conn, "select coalesce(current_setting('pgcombine.moving_r', true), '')") == ""


def test_rows_that_triggers_delete_during_an_update_are_kept(parts: Kept) -> None:
    """A moved row and a deleted one are told apart by the depth of the triggers."""
    parts.conn.execute(
        "create function purge() returns trigger language plpgsql as "
        "'begin delete from src where id < 3; update src set part = 3 where id = 4; return null; end'"
    )
    parts.conn.execute(
        "create trigger purge after update on src for each row when (new.id = 8) execute function purge()"
    )
    parts.run("update src set part = 0 where id in (5, 6, 8, 11)")
    parts.check()


def test_minima_and_maxima_of_keys_with_kept_rows_only_widen(tx: psycopg.Connection) -> None:
    value = ["count(*) as n", "min(v) as lo", "max(v) as hi"]
    kept = Kept.make(tx, "plain", value)
    view = "select lo, hi from pgcombine.r where k = 'a'"
    tx.execute("insert into src (id, k, v) values (1, 'a', 3), (2, 'a', 20), (3, 'a', 7), (4, 'b', 1), (5, 'b', 5)")
    kept.rollup.call(tx, "backfill", "drain")
    tx.execute("delete from src where v in (20, 5)")
    for _ in "pending", "combined":
        assert tx.execute(view.encode()).fetchall() == [(3, 20)]
        assert one(tx, "select hi from pgcombine.r where k = 'b'") == 1, "without kept rows, the source decides"
        assert kept.rollup.verify(tx) == []
        kept.rollup.call(tx, "drain")
    tx.execute("insert into src (id, k, v) values (6, 'a', 1), (7, 'a', 31); delete from src where v in (1, 3, 31)")
    kept.rollup.call(tx, "drain")
    assert tx.execute(view.encode()).fetchall() == [(1, 31)]
    assert kept.rollup.verify(tx) == []


def test_other_computed_columns_of_keys_with_kept_rows_keep_their_value(tx: psycopg.Connection) -> None:
    kept = Kept.make(tx, "plain", ["sum(v) as v", "count(distinct v) as d", "max(v) as hi"])
    tx.execute("insert into src (id, k, v) values (1, 'a', 1), (2, 'a', 2), (3, 'a', 3), (4, 'b', 1), (5, 'b', 3)")
    kept.rollup.call(tx, "backfill", "drain")
    tx.execute("delete from src where v in (2, 3)")
    for _ in "pending", "combined":
        assert tx.execute("select k, v, d, hi from pgcombine.r order by k").fetchall() == [
            ("a", 3, 3, 3),
            ("b", 1, 1, 1),
        ]
        assert kept.rollup.verify(tx) == []
        kept.rollup.call(tx, "drain")
    tx.execute("insert into src (id, k, v) values (6, 'a', 9), (7, 'b', 9)")
    kept.rollup.call(tx, "drain")
    assert tx.execute("select k, v, d, hi from pgcombine.r order by k").fetchall() == [("a", 12, 3, 9), ("b", 10, 2, 9)]
    assert kept.rollup.verify(tx) == []


@pytest.mark.parametrize(
    ("damage", "told", "repaired"),
    [
        ("update pgcombine.r_values set v = v + 5 where k = 'a'", ["key (a): v lacks -5"], ("a", 2, 6, 1, 4)),
        ("update pgcombine.r_values set n = n - 1 where k = 'a'", ["key (a): n lacks 1"], ("a", 2, 6, 1, 4)),
        ("update pgcombine.r_values set v_kept = 5 where k = 'a'", ["key (a): v lacks 1"], ("a", 2, 7, 1, 4)),
        ("update pgcombine.r_values set lo = 4 where k = 'a'", ["key (a): lo is 4, not 2"], ("a", 2, 6, 2, 4)),
        ("update pgcombine.r_values set hi = 0 where k = 'a'", ["key (a): hi is 0, not 2"], ("a", 2, 6, 1, 2)),
        ("update pgcombine.r_values set hi = 9 where k = 'a'", [], ("a", 2, 6, 1, 9)),
        ("delete from pgcombine.r_values where k = 'b'", ["key (b): n lacks 1, v lacks 5"], ("a", 2, 6, 1, 4)),
        ("alter table src disable trigger pgcombine_r_delete; delete from src where id = 2;"
         " alter table src enable always trigger pgcombine_r_delete", ["key (a): n lacks -1, v lacks -2"],
         ("a", 1, 4, 1, 4)),
    ],
)  # fmt: skip
def test_verify_finds_and_mends_what_can_be_found(
    tx: psycopg.Connection, damage: str, told: list[str], repaired: tuple[object, ...]
) -> None:
    """The key a has the rows 2 and, kept, 4. What the triggers noted for kept rows is taken for right."""
    kept = Kept.make(tx, "plain", ["count(*) as n", "sum(v) as v", "min(v) as lo", "max(v) as hi"])
    tx.execute("insert into src (id, k, v) values (1, 'a', 4), (2, 'a', 2), (3, 'b', 5)")
    kept.rollup.call(tx, "backfill")
    tx.execute("delete from src where id = 1; set session_replication_role = replica")
    kept.rollup.call(tx, "drain")
    tx.execute("update pgcombine.r_values set lo = 1 where k = 'a'")
    assert kept.rollup.verify(tx) == [], "a minimum may be that of a deleted row"
    tx.execute(damage.encode())
    tx.execute("reset session_replication_role")
    for repair in False, True:
        assert kept.rollup.verify(tx, repair=repair) == told
    for _ in "pending", "combined":
        assert kept.rollup.verify(tx) == []
        assert tx.execute("select k, n, v, lo, hi from pgcombine.r where k = 'a'").fetchall() == [repaired]
        kept.rollup.call(tx, "drain")


def test_rows_that_go_before_the_backfill_count(tx: psycopg.Connection) -> None:
    tx.execute("set search_path = public")
    tx.execute(f"create table src ({COLUMNS})".encode())
    tx.execute("insert into src (id, k, v) select n, 'a', n from generate_series(1, 4) n")
    rollup = Rollup.make(tx, ["count(*) as n", "sum(v) as v", "max(v) as hi"], keep=KEEP)
    tx.execute("delete from src")
    rollup.call(tx, "drain", "backfill")
    for _ in "pending", "combined":
        assert tx.execute("select n, v, hi from pgcombine.r").fetchall() == [(2, 6, 4)]
        assert rollup.verify(tx) == []
        rollup.call(tx, "drain")


def test_key_of_which_only_kept_rows_are_left_stays_until_the_queue_is_truncated(tx: psycopg.Connection) -> None:
    kept = Kept.make(tx, "plain")
    kept.insert(range(8))
    kept.rollup.call(tx, "backfill", "drain")
    tx.execute("select pgcombine.create_tier('all_keys', source => 'r', key => array['1 as one'])")
    kept.run("delete from src")
    kept.rollup.call(tx, "drain")
    kept.check()
    tx.execute("call pgcombine.drain('all_keys')")
    assert one(tx, "select v from pgcombine.all_keys_values") == 0 + 0 + 2 + 4
    tx.execute("select pgcombine.truncate_queue('r')")
    kept.rollup.call(tx, "backfill")
    assert tx.execute("table pgcombine.r_current").fetchall() == []
    assert kept.rollup.verify(tx) == []


def test_condition_follows_a_rename_and_has_its_own_functions(tx: psycopg.Connection) -> None:
    tx.execute("set search_path = public")
    tx.execute(f"create table src ({COLUMNS}); create schema app")
    tx.execute("create function app.old(int) returns boolean stable language sql return $1 < 3 and now() is not null")
    kept = Rollup.make(tx, ["count(*) as n"], keep="app.old(v) or w = 1 -- remark")
    kept.call(tx, "backfill")
    tx.execute("alter table src rename v to age; alter function app.old rename to aged; alter table src rename w to v")
    tx.execute("insert into src (id, k, age, v) values (1, 'a', 2, 5), (2, 'a', 5, 1), (3, 'a', 5, 2)")
    tx.execute("set search_path = pg_catalog; delete from public.src")
    assert one(tx, "select n from pgcombine.r") == 2
    assert kept.verify(tx) == []
    assert one(tx, "select keep from pgcombine.rollup") == "app.old(v) or w = 1 -- remark"
    with raises_state("PC003"):
        tx.execute("drop function app.aged cascade")


def test_changes_under_session_replication_role_replica_are_kept(parts: Kept) -> None:
    parts.conn.execute("set session_replication_role = replica")
    parts.run("delete from src where id < 5")
    parts.run("update src set part = 3")
    parts.conn.execute("reset session_replication_role")
    parts.check()


def test_two_rollups_of_a_table_keep_rows_of_their_own(parts: Kept) -> None:
    other = Rollup.make(parts.conn, ["count(*) as n"], name="other", keep="id < 6")
    other.call(parts.conn, "backfill")
    parts.run("update src set part = 3 - part")
    parts.run("delete from src")
    parts.check()
    assert one(parts.conn, "select sum(n)::int from pgcombine.other") == 6
    assert other.verify(parts.conn) == []


@embedded_only
def test_every_row_counts_while_sessions_delete_and_backfill(tx: psycopg.Connection, module_dsn: str) -> None:
    tx.execute(f"set search_path = public; {SHAPES['partitioned']}".encode())
    tx.execute("insert into src (id, part, k, v) select n, n % 4, 'a', 1 from generate_series(1, 100) n")
    rollup = Rollup.make(tx, ["count(*) as n", "sum(v) as v"], keep="true")

    def write() -> None:
        with psycopg.connect(module_dsn, autocommit=True, options="-c search_path=public") as conn:
            for n in range(20):
                conn.execute("insert into src (id, part, k, v) select n, n % 4, 'a', 1 from generate_series(1, 5) n")
                with suppress(psycopg.OperationalError):  # another session has moved a row
                    conn.execute(f"update src set part = 3 - part where id = {n % 4}".encode())
                    conn.execute(b"truncate p0" if n == 10 else f"delete from src where id % 4 = {n % 4}".encode())

    with workers(module_dsn, "r"), in_background(*[write] * 3):
        rollup.call(tx, "backfill")
        assert rollup.verify(tx) == []
    rollup.call(tx, "drain")
    assert tx.execute("select n, v from pgcombine.r").fetchall() == [(400, 400)]
    assert rollup.verify(tx) == []


MUTANTS: dict[str, dict[str, str]] = {
    "a moved row is kept": {">= pg_trigger_depth()": "> pg_trigger_depth()"},
    "the depth of triggers is forgotten": {">= pg_trigger_depth()": "> 0"},
    "kept rows aren't noted": {"or s.value ->> 'kind' = 'kept' and sign = '^'": ""},
    "verify forgets kept rows": {"' + coalesce(%I, 0)'": "''"},
}


@pytest.mark.slow
@embedded_only
@pytest.mark.parametrize("mutant", MUTANTS)
def test_tests_detect_each_mutant(tx: psycopg.Connection, mutant: str) -> None:
    for old, new in MUTANTS[mutant].items():
        mutate_functions(tx, old, new)
    tests: list[Callable[[Kept], None]] = [
        lambda parts: test_row_that_moves_to_another_partition_counts_once(parts, "an update"),
        test_rows_that_triggers_delete_during_an_update_are_kept,
        lambda parts: test_rows_of_partitions_are_kept(parts, "truncate all"),
    ]
    kept = Kept.make(tx, "partitioned")
    failed = []
    for test in tests:
        kept.insert(range(12))
        kept.rollup.call(tx, "backfill", "drain")
        try:
            test(kept)
        except AssertionError as error:
            failed.append(error)
        tx.execute("select pgcombine.drop_rollup('r'); drop schema public cascade; create schema public")
        kept = Kept.make(tx, "partitioned")
    assert failed
