"""contribute, begin_contribution, end_contribution, verify_contributions: what a source says, replaced as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb
from support.queues import add, combine_all, current, make_queue, one, rows, values
from support.roles import Login, Roles
from support.sessions import in_background, waits
from support.states import raises_state

from pgcombine import CombineQueue
from pgcombine.errors import InvalidDefinitionError, InvalidUpdateError, QueueNotFoundError

Contribute = Callable[[psycopg.Connection, str, dict[str, int]], int]


def contribute(conn: psycopg.Connection, source: object, updates: object, queue: str = "wc") -> int:
    found = one(conn, "select pgcombine.contribute(%s, %s, %s)", queue, source, Jsonb(updates))
    assert isinstance(found, int)
    return found


def by_json(conn: psycopg.Connection, source: str, said: dict[str, int]) -> int:
    return contribute(conn, source, [{"word": word, "n": n} for word, n in said.items()])


def by_copy(conn: psycopg.Connection, source: str, said: dict[str, int]) -> int:
    return CombineQueue("wc").contribute(conn, source, list(said.items()))


def stored(conn: psycopg.Connection, queue: str = "wc") -> list[tuple[Any, ...]]:
    return conn.execute(
        f"select c.source, v.* from pgcombine.contribution c "  # noqa: S608
        f"join pgcombine.{queue}_contributions v on v.pgcombine_source = c.id where c.queue = %s order by 1, 3",
        (queue,),
    ).fetchall()


def problems(conn: psycopg.Connection, queue: str = "wc") -> list[str]:
    found = conn.execute("select problem from pgcombine.verify_contributions(%s)", (queue,)).fetchall()
    assert conn.execute("select problem from pgcombine.verify(%s)", (queue,)).fetchall() == []
    return [problem for (problem,) in found]


@pytest.fixture
def login(conn: psycopg.Connection, dsn: str) -> Iterator[Login]:
    with Roles(conn, dsn) as roles:
        yield roles.login


@pytest.mark.wc
@pytest.mark.parametrize("put", [by_json, by_copy])
def test_contribution_replaces_the_former_one(conn: psycopg.Connection, put: Contribute) -> None:
    assert put(conn, "doc 7", {"a": 1, "b": 2}) == 2
    assert put(conn, "doc 8", {"b": 10}) == 1
    assert current(conn) == {"a": 1, "b": 12}
    assert put(conn, "doc 7", {"b": 2, "a": 1}) == 0, "equal contents enqueue nothing"
    assert put(conn, "doc 7", {"b": 3, "c": 4}) == 3
    combine_all(conn)
    assert values(conn) == {"b": 13, "c": 4}
    assert [(source, word, n) for source, _, word, n in stored(conn)] == [
        *(("doc 7", "b", 3), ("doc 7", "c", 4), ("doc 8", "b", 10))
    ]
    assert put(conn, "doc 7", {}) == 2
    assert put(conn, "doc 7", {}) == 0
    combine_all(conn)
    assert values(conn) == {"b": 10}
    assert [source for source, *_ in stored(conn)] == ["doc 8"]
    assert rows(conn, "contribution")[0][2] == "doc 8"
    assert problems(conn) == []
    add(conn, {"b": 1})
    assert problems(conn) == ["key (b): n is 11, not 10"]


@pytest.mark.wc
def test_updates_of_one_key_are_folded(conn: psycopg.Connection) -> None:
    said = [{"word": "a", "n": 2}, {"word": "a", "n": 3}, {"word": "b"}]
    assert contribute(conn, "s", said) == 2
    assert contribute(conn, "s", {"word": "a", "n": 5}) == 1, "one object is an array of one"
    assert CombineQueue("wc").contribute(conn, "s", [("a", 7), ("a", -2)]) == 0
    assert current(conn) == {"a": 5}


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read", "serializable"])
@pytest.mark.wc
def test_contributions_belong_to_the_transaction(conn: psycopg.Connection, dsn: str, isolation: str) -> None:
    """The same source twice in a transaction, with savepoints, and rolled back. The first call makes the table."""
    with psycopg.connect(dsn) as caller:
        for put in (by_json, by_copy):
            caller.execute(f"set transaction isolation level {isolation}".encode())
            put(caller, "s", {"a": 1})
            caller.execute("savepoint one")
            put(caller, "s", {"b": 2})
            caller.execute("rollback to savepoint one")
            put(caller, "s", {"a": 1, "c": 3})
            put(caller, "s", {"a": 2, "c": 3})
            caller.rollback()
            assert current(conn) == {}
            assert one(conn, "select count(*) from pgcombine.contribution") == 0
        caller.execute(f"set transaction isolation level {isolation}".encode())
        by_json(caller, "s", {"a": 1})
        caller.execute("savepoint one")
        by_copy(caller, "s", {"b": 2})
        caller.execute("release savepoint one")
        by_json(caller, "s", {"b": 5})
        caller.commit()
    assert current(conn) == {"b": 5}
    assert problems(conn) == []


@pytest.mark.wc
@pytest.mark.parametrize("first", ["commit", "rollback"])
@pytest.mark.parametrize("before", [{}, {"a": 7}])
def test_second_call_for_a_source_waits_for_the_first(
    conn: psycopg.Connection, dsn: str, first: str, before: dict[str, int]
) -> None:
    by_json(conn, "other", {"x": 1})
    by_json(conn, "s", before)
    with psycopg.connect(dsn) as one_, psycopg.connect(dsn) as two, psycopg.connect(dsn) as three:
        by_json(one_, "s", {"a": 1, "b": 1})
        by_json(three, "other", {"x": 2})  # another source waits for nobody
        three.commit()
        with in_background(lambda: by_json(two, "s", {"a": 3})) as (call,):
            waits(conn, two.info.backend_pid)
            getattr(one_, first)()
            assert call.result(60) == (2 if first == "commit" else 1)
        two.commit()
    assert current(conn) == {"a": 3, "x": 2}
    assert problems(conn) == []


@pytest.mark.wc
@pytest.mark.parametrize(
    ("before", "meanwhile"), [({"a": 1}, {"a": 1, "b": 1}), ({"a": 1}, {}), ({}, {"a": 1}), ({"a": 1}, {"a": 1})]
)
def test_older_snapshot_conflicts_with_a_contribution_since(
    conn: psycopg.Connection, dsn: str, before: dict[str, int], meanwhile: dict[str, int]
) -> None:
    """The two transactions together can't have an effect that neither order has."""
    by_json(conn, "x", {"x": 1})
    by_json(conn, "s", before)
    with psycopg.connect(dsn) as old:
        old.execute("set transaction isolation level repeatable read")
        old.execute("select 1")
        by_json(conn, "s", meanwhile)
        by_json(old, "x", {"x": 2})
        with raises_state("40001"):
            by_json(old, "s", {"a": 1})
        old.rollback()
    assert current(conn) == {"x": 1, **meanwhile}


@pytest.mark.wc
def test_sessions_that_make_the_table_at_once(conn: psycopg.Connection, dsn: str) -> None:
    with psycopg.connect(dsn) as first, psycopg.connect(dsn) as second, psycopg.connect(dsn) as old:
        old.execute("set transaction isolation level repeatable read")
        old.execute("select 1")
        by_json(first, "s", {"a": 1})
        with in_background(lambda: by_json(second, "t", {"a": 2})):
            waits(conn, second.info.backend_pid)
            first.rollback()
        second.commit()
        with raises_state("40001"):
            by_json(old, "u", {"a": 4})
        old.rollback()
        by_json(first, "s", {"b": 1})
        first.commit()
    assert current(conn) == {"a": 2, "b": 1}


@pytest.mark.wc
def test_first_contributions_to_two_queues_at_once(conn: psycopg.Connection, dsn: str, login: Login) -> None:
    """The second doesn't grant again what roles have: two transactions can't grant on one table at a time."""
    make_queue(conn, "other")
    for right in ("work", "monitor"):
        conn.execute("select pgcombine.grant_right(%s, %s)", (right, login().info.user))
    with psycopg.connect(dsn) as first, psycopg.connect(dsn) as second:
        contribute(first, "s", {"word": "a", "n": 1})
        second.execute("set lock_timeout = '5 s'")
        contribute(second, "s", {"word": "a", "n": 1}, "other")
    assert current(conn) == {"a": 1}


@pytest.mark.wc
def test_columns_of_other_queues_dont_matter(conn: psycopg.Connection) -> None:
    """With statistics, PostgreSQL reads all rows of queue_column, and may check their privileges first."""
    make_queue(conn, "other", key=["id int"], value=["total bigint sum"], delete_when=None)
    conn.execute("analyze pgcombine.queue_column")
    assert by_json(conn, "s", {"a": 1}) == 1


@pytest.mark.wc
def test_contribution_that_waits_for_the_tables_holds_no_source(conn: psycopg.Connection, dsn: str) -> None:
    """truncate_queue and drop_queue lock the tables, then delete the rows of the sources: one would be a deadlock."""
    by_json(conn, "s", {"a": 1})
    with (
        psycopg.connect(dsn) as holder,
        psycopg.connect(dsn, autocommit=True) as caller,
        psycopg.connect(dsn, autocommit=True) as remover,
    ):
        holder.execute("select from pgcombine.wc_values")
        with in_background(lambda: remover.execute("select pgcombine.truncate_queue('wc')")):
            waits(conn, remover.info.backend_pid)
            with in_background(lambda: by_json(caller, "s", {"a": 2})) as (call,):
                waits(conn, caller.info.backend_pid)
                holder.rollback()
                assert call.result(60) == 1
    assert current(conn) in ({}, {"a": 2})  # whichever got the tables first
    assert problems(conn) == []


def test_composite_keys_of_any_type(conn: psycopg.Connection) -> None:
    conn.execute("create type pair as (x int, y text); create type mood as enum ('ok', 'bad')")
    key = ["k pair", "m mood", "tags text[]", "d numeric", '"odd {name}" text collate "C"']
    make_queue(conn, key=key, value=["n bigint sum", "c int count"], delete_when="c = 0")
    said = [
        {"k": {"x": 1, "y": "a"}, "m": "ok", "tags": ["a", None], "d": 1.0, "odd {name}": "x", "n": 2},
        {"k": {"x": 1, "y": None}, "m": "bad", "tags": [], "d": 2, "odd {name}": "", "n": None, "c": 2},
    ]
    assert contribute(conn, "s", said) == 2
    said[0]["d"] = 1
    assert contribute(conn, "s", said) == 0, "1.0 and 1 are one key"
    assert contribute(conn, "t", said[1:]) == 1
    assert contribute(conn, "s", said[:1]) == 1
    assert problems(conn) == []
    assert contribute(conn, "s", []) == 1
    combine_all(conn)
    assert [row[5:] for row in rows(conn, "wc_values")] == [(None, 2)]


def test_columns_of_each_type_are_taken_back(conn: psycopg.Connection) -> None:
    types = ["smallint", "integer", "bigint", "numeric(10,2)", "real", "double precision", "interval", "money"]
    make_queue(conn, value=[f"v{n} {type_} sum" for n, type_ in enumerate(types)], delete_when=None)
    said = [
        {"word": "a", "v0": -7, "v1": 7, "v2": 7, "v3": 1.255, "v4": "-0.0", "v5": 0.5, "v6": "1 day", "v7": "2"},
        {"word": "b", "v0": None, "v5": "-0"},
    ]
    assert contribute(conn, "s", said) == 2
    assert contribute(conn, "s", said) == 0
    said[0] |= {"v0": None, "v3": 1.26, "v4": 0, "v6": "24:00", "v7": None}
    assert contribute(conn, "s", said) == 1, "-0.0 is 0, 1 day is 24 hours"
    assert problems(conn) == []
    combine_all(conn)
    assert one(conn, "select v0 from pgcombine.wc_values where word = 'a'") == 0
    assert one(conn, "select v3 from pgcombine.wc_values where word = 'a'") == Decimal("1.26")
    assert contribute(conn, "s", []) == 2
    combine_all(conn)
    assert (
        one(
            conn,
            "select min(n) from (select (v0, v1, v2, v3, v6) = (0, 0, 0, 0, '0') as ok, 1 as n "
            "from pgcombine.wc_values where word = 'a') t where ok",
        )
        == 1
    )
    assert problems(conn) == []


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        *(("double precision sum", "NaN"), ("real sum", "Infinity"), ("numeric sum", "NaN")),
        *(("numeric sum", "-Infinity"), ("numeric count", "NaN")),
    ],
)
def test_value_that_no_update_takes_back_is_refused(conn: psycopg.Connection, type_: str, value: str) -> None:
    make_queue(conn, value=[f"n {type_}"])
    with raises_state("23514", "could take it back"):
        contribute(conn, "s", {"word": "a", "n": value})
    with pytest.raises(InvalidUpdateError, match="could take it back"):
        CombineQueue("wc").contribute(conn, "s", [("a", value)])
    assert current(conn) == {}


@pytest.mark.parametrize("put", [by_json, by_copy])
def test_overflows_are_errors(conn: psycopg.Connection, put: Contribute) -> None:
    make_queue(conn, value=["n smallint sum"], delete_when=None)
    put(conn, "s", {"a": 32767})
    error = InvalidUpdateError if put is by_copy else psycopg.errors.NumericValueOutOfRange
    with pytest.raises(error, match="smallint out of range"):
        put(conn, "s", {"a": -2})  # the difference is out of range
    with pytest.raises(error, match="smallint out of range"):
        contribute(conn, "s", [{"word": "a", "n": 32767}] * 2) if put is by_json else CombineQueue("wc").contribute(
            conn, "s", [("a", 32767)] * 2
        )
    assert put(conn, "s", {}) == 1
    assert put(conn, "s", {"a": -2}) == 1
    assert current(conn) == {"a": -2}


def test_sum_of_contributions_beyond_the_range_is_a_problem(conn: psycopg.Connection) -> None:
    make_queue(conn, value=["n smallint sum"], delete_when=None)
    add(conn, {"a": -1})
    contribute(conn, "s", [{"word": "a", "n": 32767}, {"word": "b", "n": 1}])
    contribute(conn, "t", {"word": "a", "n": 1})
    assert problems(conn) == ["key (a): n is 32767, not 32768"]


@pytest.mark.wc
@pytest.mark.parametrize(
    ("source", "updates", "state", "named"),
    [
        (None, [], "PC004", "null"),
        ("", [], "PC004", "empty"),
        ("é" * 513, [], "PC004", "1026"),
        ("s", [{"word": None, "n": 1}], "PC004", "word"),
        ("s", [{"n": 1}], "PC004", "word"),
        ("s", [{"word": "a", "m": 1}], "PC004", '"m"'),
        ("s", "a", "PC004", "array"),
        ("s", [{"word": "a", "n": "x"}], "22P02", "x"),
        ("s", [{"word": "a" * 2601, "n": 1}], "23514", "2600"),
    ],
)
def test_bad_contributions_are_refused(
    conn: psycopg.Connection, source: object, updates: object, state: str, named: str
) -> None:
    with raises_state(state, named):
        contribute(conn, source, updates)
    assert current(conn) == {}
    assert by_json(conn, "s" * 1024, {"a" * 2600: 1}) == 1


@pytest.mark.wc
def test_python_names_the_row_and_the_source(conn: psycopg.Connection) -> None:
    queue = CombineQueue("wc")
    with pytest.raises(InvalidUpdateError, match="update 2"):
        queue.contribute(conn, "s", [("a", 1), ("b", "x")])
    with pytest.raises(InvalidUpdateError, match="1 columns"):
        queue.contribute(conn, "s", [("a", 1), ("b",)])
    with pytest.raises(InvalidUpdateError, match="empty"):
        queue.contribute(conn, "", [("a", 1)])
    with pytest.raises(QueueNotFoundError):
        CombineQueue("wd").contribute(conn, "s", [])
    with conn.transaction():
        with pytest.raises(InvalidUpdateError):
            queue.contribute(conn, "s", [{"c": 1}, ("a", 1)])
        assert queue.contribute(conn, "s", [{"word": "a"}, {"n": 4, "word": "a"}]) == 1, "the transaction goes on"
    assert current(conn) == {"a": 4}


@pytest.mark.parametrize("combiner", ["max", "bool_or", "last(at)"])
def test_other_combiners_are_refused(conn: psycopg.Connection, combiner: str) -> None:
    type_ = "boolean" if combiner == "bool_or" else "bigint"
    make_queue(conn, value=["c int count", f"n {type_} {combiner}", "at timestamptz max"], delete_when=None)
    with raises_state("PC003", '"n"', combiner.removesuffix("(at)"), "last(at)"):
        contribute(conn, "s", {"word": "a"})
    with pytest.raises(InvalidDefinitionError, match="takes no contributions"):
        CombineQueue("wc").contribute(conn, "s", [])
    assert one(conn, "select contribution from pgcombine.queue") is None


def test_component_that_takes_updates_elsewhere_is_refused(conn: psycopg.Connection) -> None:
    """Such as a front: its updates go to other databases, which may commit without this one."""
    hook = "select case when $1 = 'front' then 0::bigint end -- $2, $3"
    conn.execute("insert into pgcombine.hook (event, query) values ('enqueue', %s)", (hook,))
    assert one(conn, "select pgcombine.enqueue('front', '[]')") == 0
    with raises_state("PC003", '"front" takes no contributions', "elsewhere"):
        contribute(conn, "s", [], "front")
    with raises_state("PC001", '"fron"'):
        contribute(conn, "s", [], "fron")


def test_combiner_of_a_user_may_have_a_difference(conn: psycopg.Connection) -> None:
    conn.execute(
        "create function plus(int, int) returns int language sql immutable strict return $1 + $2;"
        "create function minus(int, int) returns int language sql immutable strict return $1 - $2"
    )
    make_queue(conn, value=["n int plus"])
    with raises_state("PC003"):
        contribute(conn, "s", {"word": "a", "n": 1})
    difference = "public.minus(coalesce({new}, 0), coalesce({old}, 0))::{type}"
    conn.execute("update pgcombine.combiner set difference = %s where combiner ~ 'plus'", (difference,))
    contribute(conn, "s", {"word": "a", "n": 5})
    contribute(conn, "s", {"word": "a", "n": 2})
    combine_all(conn)
    assert values(conn) == {"a": 2}
    assert problems(conn) == []


@pytest.mark.wc
def test_contribution_ends_only_after_it_began(conn: psycopg.Connection, login: Login) -> None:
    role = login("insert (word, n) on pgcombine.wc_updates")
    with raises_state("PC014", "begin_contribution"):
        role.execute("select pgcombine.end_contribution('wc', 's')")
    role.execute("create temporary table pgcombine_contribution_wc (word text, n bigint)")
    with raises_state("PC014"):  # its policies would run with the owner's rights
        role.execute("select pgcombine.end_contribution('wc', 's')")
    with raises_state("42P07"):
        role.execute("select pgcombine.begin_contribution('wc')")


@pytest.mark.wc
def test_role_that_may_enqueue_contributes_and_reads_nothing(conn: psycopg.Connection, login: Login) -> None:
    role = login("insert (word, n) on pgcombine.wc_updates")
    for put in (by_json, by_copy):
        assert put(role, "s", {"a": 1}) == 1
        assert put(role, "s", {}) == 1
    by_json(role, "s", {"a": 1})
    for table in ("wc_contributions", "contribution", "wc_values"):
        for statement in ("select * from pgcombine.{}", "delete from pgcombine.{}"):
            with raises_state("42501"):
                role.execute(statement.format(table).encode())
    with raises_state("42501"):
        role.execute("select pgcombine.verify_contributions('wc')")
    with role.transaction():
        table = one(role, "select pgcombine.begin_contribution('wc')")
        with raises_state("42501"), role.transaction():
            role.execute(f"alter table {table} add column c int".encode())
        with raises_state("42501"), role.transaction():
            role.execute(f"select * from {table}".encode())  # noqa: S608
        with raises_state("42501"), role.transaction():
            role.execute("select pgcombine_internal.replace_contribution('wc', 's', '(select 1)')")
    assert current(conn) == {"a": 1}


@pytest.mark.wc
def test_role_with_less_than_the_right_is_refused(conn: psycopg.Connection, login: Login) -> None:
    by_json(conn, "s", {"a": 1})
    for role, named in [
        (login(), "grant_right"),
        (login("select on pgcombine.wc_values"), "grant_right"),
        (login("insert (word) on pgcombine.wc_updates"), "all columns"),
    ]:
        with raises_state("42501", named):
            by_json(role, "s", {"a": 2})
        with raises_state("42501"):
            role.execute("select pgcombine.begin_contribution('wc')")
    role = login("insert (word, n) on pgcombine.wc_updates")
    conn.execute("alter table pgcombine.wc_updates enable row level security")
    with raises_state("42501", "policies"):
        by_json(role, "s", {"a": 2})
    assert current(conn) == {"a": 1}


@pytest.mark.wc(buckets=2)
def test_contributions_outlive_changes_of_the_queue(conn: psycopg.Connection) -> None:
    by_json(conn, "s", {"a": 1, "b": 2})
    conn.execute("select pgcombine.rebucket('wc', 5)")
    conn.execute("select pgcombine_internal.regenerate('wc')")
    assert by_copy(conn, "s", {"a": 1, "b": 3}) == 1
    assert problems(conn) == []
    conn.execute("update pgcombine.queue set contribution = contribution || ' '")
    assert "contributions" in one(conn, "select problem from pgcombine.verify('wc')")
    conn.execute("select pgcombine_internal.regenerate('wc')")
    assert problems(conn) == []


@pytest.mark.wc
def test_truncate_and_drop_take_the_contributions(conn: psycopg.Connection) -> None:
    by_json(conn, "s", {"a": 1})
    conn.execute("select pgcombine.truncate_queue('wc')")
    assert stored(conn) == []
    assert by_json(conn, "s", {"a": 1}) == 1
    assert current(conn) == {"a": 1}
    conn.execute("select pgcombine.drop_queue('wc', force => true)")
    assert rows(conn, "contribution") == []
    assert one(conn, "select to_regclass('pgcombine.wc_contributions')") is None
    make_queue(conn)
    assert by_json(conn, "s", {"a": 2}) == 1
    assert current(conn) == {"a": 2}


@pytest.mark.wc
def test_taken_name_is_reported(conn: psycopg.Connection) -> None:
    conn.execute("create table pgcombine.wc_contributions (a int)")
    with raises_state("PC002", "wc_contributions"):
        by_json(conn, "s", {"a": 1})


@pytest.mark.wc
def test_full_queue_refuses_a_contribution(conn: psycopg.Connection) -> None:
    by_json(conn, "s", {"a": 1})
    conn.execute("update pgcombine.queue set max_backlog = 1, is_full = true")
    conn.execute("select pgcombine_internal.regenerate('wc')")
    with raises_state("PC010"):
        by_json(conn, "s", {"a": 2})
    assert problems(conn) == []
