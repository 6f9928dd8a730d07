"""Budgets: their definition, each call, input that is refused, rights, and the queue of the same name."""

from __future__ import annotations

import threading
from decimal import Decimal
from functools import partial
from itertools import product
from typing import Any

import psycopg
import pytest
from psycopg import errors
from support.budgets import call, has, make_budget, problems
from support.queues import combine_all, one, rows
from support.roles import Login
from support.sessions import in_background, waits, workers
from support.states import raises_state
from support.wait import eventually

from pgcombine import schema


def test_take_takes_what_there_is(seats: psycopg.Connection) -> None:
    call(seats, "add", 7, 500)
    assert call(seats, "take", 7, 2)
    assert has(seats) == {7: (498, 0)}
    assert not call(seats, "take", 7, 499)
    assert call(seats, "take", 7, 498)
    assert not call(seats, "take", 7, 1)
    assert not call(seats, "take", 8, 1)
    assert has(seats) == {}
    assert rows(seats, "seats_current") == [(7, 0, 0)]
    assert problems(seats) == []


@pytest.mark.parametrize("amount", [1, 5, 16, 31, 500, 2**62])
def test_added_amount_is_divided_into_chips(seats: psycopg.Connection, amount: int) -> None:
    call(seats, "add", 7, amount)
    chips = [chip for (chip,) in seats.execute("select amount from pgcombine.seats_chips")]
    assert len(chips) == min(amount, 16)
    assert sum(chips) == amount
    assert max(chips) - min(chips) <= 1
    assert call(seats, "take", 7, amount)


def test_holds_are_settled_or_released_once(seats: psycopg.Connection) -> None:
    call(seats, "add", 7, 10)
    for hold in ("a", "b"):
        assert call(seats, "hold", 7, 4, hold=hold, for_at_most="10 min")
    assert not call(seats, "hold", 7, 4, hold="c", for_at_most="10 min")
    assert has(seats) == {7: (2, 8)}
    assert call(seats, "settle", "a", 1)
    assert has(seats) == {7: (5, 4)}
    assert call(seats, "release", "b")
    assert has(seats) == {7: (9, 0)}
    for hold in ("a", "b", "c"):
        assert not call(seats, "settle", hold, 1)
        assert not call(seats, "release", hold)
    assert rows(seats, "seats_current") == [(7, 9, 0)]


def test_hold_of_all_is_settled_with_all(seats: psycopg.Connection) -> None:
    call(seats, "add", 7, 10)
    assert call(seats, "hold", 7, 10, hold="a", for_at_most="1 min")
    assert has(seats) == {7: (0, 10)}
    assert call(seats, "settle", "a", 10)
    assert has(seats) == {}


def test_take_all_takes_from_all_keys_or_none(seats: psycopg.Connection) -> None:
    for show in (1, 2, 3):
        call(seats, "add", show, 10)
    assert call(seats, "take_all", [3, 1, 3], [2, 10, 3])
    assert has(seats) == {2: (10, 0), 3: (5, 0)}
    assert not call(seats, "take_all", [2, 3], [1, 6])
    assert has(seats) == {2: (10, 0), 3: (5, 0)}
    assert problems(seats) == []


def test_expired_holds_are_given_back(seats: psycopg.Connection, dsn: str) -> None:
    call(seats, "add", 7, 10)
    call(seats, "hold", 7, 4, hold="a", for_at_most="1 ms")
    call(seats, "hold", 7, 3, hold="b", for_at_most="10 min")
    seats.execute("call pgcombine.drain('seats')")
    assert has(seats) == {7: (7, 3)}
    assert rows(seats, "seats_values") == [(7, 7, 3)]
    with workers(dsn):
        call(seats, "hold", 7, 2, hold="c", for_at_most="0.2 s")
        eventually(lambda: has(seats) == {7: (7, 3)}, timeout=1.2, what="the hold is given back")
    assert problems(seats) == []


def test_drain_gives_all_expired_holds_back(seats: psycopg.Connection) -> None:
    call(seats, "add", 7, 3000)
    seats.execute(
        "select pgcombine.seats_hold(7, 1, hold => 'h' || n, for_at_most => '1 us') from generate_series(1, 2001) n"
    )
    seats.execute("call pgcombine.drain('seats')")
    seats.execute("select pgcombine.seats_hold(7, 1, hold => 'last', for_at_most => '1 us')")
    combine_all(seats, "seats")
    seats.execute("call pgcombine.drain('seats')")  # nothing else is pending
    assert rows(seats, "seats_values") == [(7, 3000, 0)]


def test_python_drain_gives_expired_holds_back(seats: psycopg.Connection, dsn: str) -> None:
    from pgcombine import drain

    call(seats, "add", 7, 10)
    call(seats, "hold", 7, 4, hold="a", for_at_most="1 ms")
    drain(dsn, "seats")
    assert rows(seats, "seats_values") == [(7, 10, 0)]


def test_upkeep_merges_small_chips(seats: psycopg.Connection, dsn: str) -> None:
    for number in range(100):
        call(seats, "add", 7, 1)
        call(seats, "add", number + 10, 1)
    with psycopg.connect(dsn) as other:
        assert call(other, "take", 7, 1)  # this chip is in use
        seats.execute("select pgcombine_internal.tend_budget(b) from pgcombine.budget b")
        # the largest sixteen, the others as one, and perhaps the one in use
        assert one(seats, "select count(*) from pgcombine.seats_chips where show = 7") in {17, 18}
        assert one(seats, "select count(*) from pgcombine.seats_chips where show > 7") == 100
    assert has(seats)[7] == (99, 0)
    assert problems(seats) == []


def test_chips_that_fit_no_one_chip_keep_no_hold_from_expiring(conn: psycopg.Connection) -> None:
    make_budget(conn, amount="integer", chips=1)
    for _ in range(3):
        call(conn, "add", 7, 2**30)
    call(conn, "add", 8, 5)
    call(conn, "hold", 8, 4, hold="a", for_at_most="1 us")
    conn.execute("select pgcombine_internal.tend_budget(b) from pgcombine.budget b")
    assert one(conn, "select sum(amount) from pgcombine.seats_chips where show = 8") == 5
    assert one(conn, "select sum(amount) from pgcombine.seats_chips where show = 7") == 3 * 2**30


def test_waiting_takes_split_chips(conn: psycopg.Connection, dsn: str) -> None:
    make_budget(conn, chips=1)
    call(conn, "add", 7, 100)
    with psycopg.connect(dsn) as first, psycopg.connect(dsn) as second:
        call(first, "take", 7, 1)
        with in_background(lambda: call(second, "take", 7, 1)) as (taken,):
            waits(conn, second.info.backend_pid)
            first.commit()
            assert taken.result(30)
    assert rows(conn, "seats_chips") != []
    assert sorted(amount for (amount,) in conn.execute("select amount from pgcombine.seats_chips")) == [49, 49]


AMOUNTS = {  # by type: amounts that no function accepts, and odd ones that all accept
    "integer": ([None, 0, -1, -(2**31)], [1, 2**31 - 1]),
    "bigint": ([None, 0, -1, -(2**63)], [1, 2**63 - 1]),
    "numeric": (
        [None, *map(Decimal, ("0", "-0.1", "NaN", "Infinity", "-Infinity", "1e1000", "1e131071", "1e-1001"))],
        [*map(Decimal, ("0.001", "1.000000", "1e-1000", "9e999", "33.3333333333333333333333"))],
    ),
    "numeric(14,2)": (
        [None, *map(Decimal, ("0", "-0.01", "NaN", "Infinity", "-Infinity", "0.001", "0.005", "1e12", "1e131071"))],
        [*map(Decimal, ("0.01", "1", "10.0000000", "0.17000", "999999999999.99"))],
    ),
    "numeric(3,3)": ([None, Decimal(0), Decimal("0.0005"), Decimal(1)], [Decimal("0.999"), Decimal("0.1000")]),
    "numeric(14)": ([None, Decimal(0), Decimal("0.5"), Decimal("1e14")], [Decimal("1.0"), Decimal("1e13")]),
}
FUNCTIONS = ("add", "take", "take_all", "hold", "settle")


def use(conn: psycopg.Connection, function: str, amount: Any) -> Any:
    """Call a function of the budget with an amount of key 7, or of the hold b."""
    match function:
        case "take_all":
            return call(conn, function, [7, 7], [amount, amount])
        case "hold":
            return call(conn, function, 7, amount, hold="a", for_at_most="1 min")
        case "settle":
            return call(conn, function, "b", amount)
    return call(conn, function, 7, amount)


@pytest.mark.parametrize("amount_type", AMOUNTS)
def test_no_function_rounds_an_amount(conn: psycopg.Connection, amount_type: str) -> None:
    """Each refuses the same amounts by PC004, and takes or adds the others exactly."""
    wrong, right = AMOUNTS[amount_type]
    make_budget(conn, amount=amount_type)
    held = Decimal("0.1") if amount_type == "numeric(3,3)" else 5
    call(conn, "add", 7, held)
    call(conn, "hold", 7, held, hold="b", for_at_most="1 min")
    for function, amount in product(FUNCTIONS, wrong):
        if (function, amount) != ("settle", 0):
            shown = "" if amount is None else format(amount, "f" if isinstance(amount, Decimal) else "")
            with raises_state("PC004", "seats", shown, amount_type.rstrip(")")):
                use(conn, function, amount)
    assert has(conn) == {7: (0, held)}
    for amount in right:
        use(conn, "add", amount)
        assert has(conn) == {7: (amount, held)}
        assert not use(conn, "take_all", amount)  # twice
        assert use(conn, "hold", amount)
        assert call(conn, "settle", "a", 0)
        assert use(conn, "hold", amount)
        assert call(conn, "settle", "a", amount)
        use(conn, "add", amount)
        assert use(conn, "take", amount)
        assert has(conn) == {7: (0, held)}
    assert problems(conn) == []


def test_amounts_with_zeros_at_the_end_are_divided_exactly(conn: psycopg.Connection, dsn: str) -> None:
    """A chip has no more decimals than the type, whatever the amounts of the calls have."""
    make_budget(conn, amount="numeric(14,2)", chips=1)
    call(conn, "add", 7, Decimal("9.03"))
    with psycopg.connect(dsn) as first, psycopg.connect(dsn) as second:
        call(first, "take", 7, Decimal("0.01"))
        with in_background(lambda: call(second, "take", 7, Decimal("1.0000"))) as (taken,):
            waits(conn, second.info.backend_pid)
            first.rollback()
            assert taken.result(30)
    assert has(conn) == {7: (Decimal("8.03"), 0)}
    assert problems(conn) == []


@pytest.mark.parametrize("hold", [None, "", "x" * 201])
def test_odd_names_of_holds_are_refused(seats: psycopg.Connection, hold: str | None) -> None:
    call(seats, "add", 7, 5)
    with raises_state("PC004", "seats", hold or ""):
        call(seats, "hold", 7, 1, hold=hold, for_at_most="1 min")


@pytest.mark.parametrize("time", [None, "0", "-1 s", "1 mon -31 days", "100 years 1 us", "178000000 years"])
def test_odd_times_of_holds_are_refused(seats: psycopg.Connection, time: str | None) -> None:
    call(seats, "add", 7, 5)
    call(seats, "hold", 7, 1, hold="b", for_at_most="100 years")
    shown = one(seats, "select coalesce(%s::interval::text, 'null')", time)
    with raises_state("PC004", "seats", shown):
        call(seats, "hold", 7, 1, hold="a", for_at_most=time)


def test_odd_calls_are_refused(seats: psycopg.Connection) -> None:
    call(seats, "add", 7, 5)
    for function in ("add", "take"):
        with raises_state("PC004", "seats"):
            call(seats, function, None, 1)
    call(seats, "hold", 7, 2, hold="a", for_at_most="1 min")
    with raises_state("PC002", "'a'"):
        call(seats, "hold", 7, 1, hold="a", for_at_most="1 min")
    for amount in (3, -1, None):
        with raises_state("PC004", "'a'", "holds 2"):
            call(seats, "settle", "a", amount)
    for keys, amounts in (([7], [1, 1]), ([], []), (None, [1]), ([7], None), ([7, None], [1, 1]), ([7, 7], [1, None])):
        with raises_state("PC004"):
            call(seats, "take_all", keys, amounts)
    assert not call(seats, "take_all", [7, 7], [2**63 - 1, 1])  # no key can have as much
    assert not call(seats, "settle", None, 1)
    assert has(seats) == {7: (3, 2)}


def test_key_that_is_too_long_is_refused_as_the_queue_does(conn: psycopg.Connection) -> None:
    make_budget(conn, key=['item text collate "C"', "id int"])
    long = "".join(map(chr, range(256, 3000)))
    with raises_state("23514", "a key has at most 2600 bytes"):
        call(conn, "add", long, 1, 5)
    assert not call(conn, "take", long, 1, 5)
    assert not call(conn, "hold", long, 1, 5, hold="a", for_at_most="1 min")


@pytest.mark.parametrize(
    ("options", "sqlstate", "value"),
    [
        ({"amount": "double precision"}, "PC003", "double precision"),
        ({"amount": None}, "PC003", "null"),
        ({"amount": "numeric) sum', 'x"}, "PC003", "numeric)"),
        ({"chips": 0}, "PC003", "0"),
        ({"chips": None}, "PC003", "null"),
        ({"key": ["amount int"]}, "PC003", "amount int"),
        ({"key": ["show int[]"]}, "PC003", "show int[]"),
        ({"amount": "numeric(99999999999)"}, "PC003", "99999999999"),
        ({"amount": "numeric(1001)"}, "PC003", "1001"),
        ({"amount": "numeric(0)"}, "PC003", "0"),
        ({"chips": 1001}, "PC003", "1001"),
        ({"buckets": None}, "PC003", "null"),
        ({"budget": None}, "PC003", "null"),
        ({"key": None}, "PC003", "key"),
        ({"key": [f"k{number} int" for number in range(32)]}, "PC003", "32"),
        ({"key": ["_chips int"]}, "PC003", "_chips int"),
        ({"key": ['"$1" int']}, "PC003", "$1"),
        ({"key": ["available int"]}, "PC003", "available"),
        ({"key": []}, "PC003", "key"),
        ({"budget": "Seats"}, "PC003", "Seats"),
        ({"budget": "taken"}, "PC002", "taken_take"),
        ({"budget": "there"}, "PC002", "there"),
        ({"budget": "status"}, "PC002", "status"),
    ],
)
def test_wrong_definitions_are_refused(
    conn: psycopg.Connection, options: dict[str, Any], sqlstate: str, value: str
) -> None:
    make_budget(conn, "there")
    conn.execute("create function pgcombine.taken_take() returns int language sql as 'select 1'")
    with raises_state(sqlstate, value):
        make_budget(conn, **options)


def test_budget_may_exist_with_the_same_definition(conn: psycopg.Connection) -> None:
    for _ in range(2):
        make_budget(conn, amount="numeric(14,2)", if_not_exists=True)
    for other in ({"chips": 2}, {"amount": "bigint"}, {"key": ["item text"]}):
        with raises_state("PC002", "seats"):
            make_budget(conn, **({"amount": "numeric(14,2)", "if_not_exists": True} | other))
    conn.execute("select pgcombine.create_queue('q', array['show int'], array['available bigint sum'])")
    with raises_state("PC002", "q"):
        make_budget(conn, "q", if_not_exists=True)


def test_keys_of_several_columns(conn: psycopg.Connection) -> None:
    """One of the columns has an odd name, and one a type in which different texts are equal."""
    make_budget(conn, "stock", key=['"Item {n}" text collate "C"', "size numeric", "id int"])
    call(conn, "add", "chair", Decimal("1"), 1, 9, budget="stock")
    assert call(conn, "take", "chair", Decimal("1.0"), 1, 4, budget="stock")
    assert not call(conn, "take", "chair", Decimal("1.1"), 1, 1, budget="stock")
    sizes = [Decimal("1"), Decimal("1.00")]
    assert call(conn, "take_all", ["chair", "chair"], sizes, [1, 1], [1, 1], budget="stock")
    assert call(conn, "hold", "chair", Decimal("1.000"), 1, 2, "h", "1 min", budget="stock")
    assert call(conn, "settle", "h", 1, budget="stock")
    with raises_state("PC004", "stock"):
        call(conn, "take", "chair", None, 1, 1, budget="stock")
    assert [row[-2:] for row in rows(conn, "stock")] == [(2, 0)]
    assert problems(conn, "stock") == []
    conn.execute("select pgcombine_internal.tend_budget(b) from pgcombine.budget b")


def test_every_change_is_an_update_of_the_queue(seats: psycopg.Connection) -> None:
    seats.execute("create table entry (show int, available bigint, held bigint)")
    combined = []
    seats.execute(
        "select pgcombine.add_observer('seats', 'ledger', "
        "'insert into public.entry select show, available, held from arrived')"
    )
    for function, *arguments in (
        ("add", 7, 10),
        ("take", 7, 2),
        ("hold", 7, 3, "a", "1 min"),
        ("settle", "a", 1),
        ("take", 7, 7),
        ("take", 7, 1),
    ):
        call(seats, function, *arguments)
        combine_all(seats, "seats")
        combined += seats.execute("delete from entry returning available, held").fetchall()
    assert combined == [(10, 0), (-2, 0), (-3, 3), (2, -3), (-7, 0)]
    assert rows(seats, "seats_values") == [(7, 0, 0)]


def test_verify_finds_a_difference(seats: psycopg.Connection) -> None:
    call(seats, "add", 7, 10)
    assert problems(seats) == []
    seats.execute("insert into pgcombine.seats_updates (show, available) values (8, 1)")
    seats.execute("insert into pgcombine.seats_chips (show, amount) values (7, 1)")
    assert len(problems(seats)) == 2
    assert one(seats, "select count(*) from pgcombine.verify('seats')") == 2


def test_rebucket_upgrade_and_truncate(seats: psycopg.Connection, dsn: str) -> None:
    call(seats, "add", 7, 10)
    call(seats, "hold", 7, 4, hold="a", for_at_most="10 min")
    seats.execute("select pgcombine.rebucket('seats', 4)")
    call(seats, "take", 7, 1)
    seats.execute("create or replace function pgcombine.seats_release(hold text) returns boolean return true")
    seats.execute("update pgcombine.schema_version set digest = 'older'")
    schema.upgrade(dsn)
    assert call(seats, "release", "a")
    assert has(seats) == {7: (9, 0)}
    assert problems(seats) == []
    call(seats, "hold", 7, 4, hold="a", for_at_most="10 min")
    seats.execute("select pgcombine.truncate_queue('seats')")
    assert has(seats) == {}
    assert problems(seats) == []
    assert not call(seats, "release", "a")


@pytest.mark.parametrize("end", ["truncate_queue('seats')", "drop_budget('seats', force => true)"])
def test_end_beside_calls(seats: psycopg.Connection, dsn: str, end: str) -> None:
    """All calls lock the tables in the same order, so that none is in a deadlock with what needs the tables alone."""
    done = threading.Event()

    def use(number: int) -> None:
        with psycopg.connect(dsn, autocommit=True) as conn:
            while not done.is_set():
                try:
                    call(conn, "add", 7, 5)
                    call(conn, "take", 7, 2)
                    call(conn, "hold", 7, 1, str(number), "1 min")
                    call(conn, "settle", str(number), 1)
                    call(conn, "hold", 7, 1, str(number), "1 ms")
                    conn.execute("select pgcombine_internal.tend_budget(b) from pgcombine.budget b")
                    call(conn, "release", str(number))
                except (errors.UndefinedFunction, errors.UndefinedTable, errors.InternalError_):
                    return  # dropped

    with in_background(*[partial(use, number) for number in range(4)]):
        try:
            for _ in range(5 if "truncate" in end else 1):
                done.wait(0.1)
                seats.execute(f"set statement_timeout = '30 s'; select pgcombine.{end}".encode())
        finally:
            done.set()
    if "truncate" in end:
        assert problems(seats) == []


def test_drop(seats: psycopg.Connection) -> None:
    call(seats, "add", 7, 10)
    call(seats, "hold", 7, 4, hold="a", for_at_most="10 min")
    with raises_state("PC005", "1 holds"):
        seats.execute("select pgcombine.drop_budget('seats')")
    call(seats, "release", "a")
    with raises_state("PC005", "seats"):
        seats.execute("select pgcombine.drop_queue('seats')")
    with raises_state("PC005", "pending"):
        seats.execute("select pgcombine.drop_budget('seats')")
    combine_all(seats, "seats")
    seats.execute("select pgcombine.create_feed('f', 'seats')")
    with raises_state("PC005", "feed"):
        seats.execute("select pgcombine.drop_budget('seats')")
    seats.execute("select pgcombine.drop_budget('seats', force => true)")
    left = "select count(*) from pg_class where relname like 'seats%'"
    assert one(seats, left) == 0
    assert one(seats, "select count(*) from pg_proc where proname like 'seats%'") == 0
    assert rows(seats, "budget") == rows(seats, "component_table")[:0]
    for unknown, sqlstate in (("seats", "PC001"), ("wc", "PC003")):
        seats.execute(
            "select pgcombine.create_queue('wc', array['word text'], array['n bigint sum'], if_not_exists => true)"
        )
        with raises_state(sqlstate, unknown):
            seats.execute("select pgcombine.drop_budget(%s)", (unknown,))
        with raises_state(sqlstate, unknown):
            problems(seats, unknown)
    make_budget(seats)


def test_rights(seats: psycopg.Connection, login: Login) -> None:
    call(seats, "add", 7, 10)
    role = login()
    calls = {
        "add": [7, 1],
        "take": [7, 1],
        "take_all": [[7], [1]],
        "hold": [7, 1, "h", "1 min"],
        "settle": ["h", 1],
        "release": ["h"],
    }
    for function, arguments in calls.items():
        with pytest.raises(errors.InsufficientPrivilege):
            call(role, function, *arguments)
    seats.execute("select pgcombine.grant_right('enqueue', %s, 'seats')", (role.info.user,))
    for function, arguments in calls.items():
        call(role, function, *arguments)
    for statement in (
        "table pgcombine.seats",
        "table pgcombine.seats_chips",
        "table pgcombine.seats_holds",
        "select pgcombine_internal.seats_gather(7, 1, true)",
        "select pgcombine_internal.tend_budget(b) from pgcombine.budget b",
        "select * from pgcombine.verify_budget('seats')",
        "select pgcombine.drop_budget('seats')",
        "select pgcombine.create_budget('mine', array['show int'])",
    ):
        with pytest.raises(errors.InsufficientPrivilege):
            role.execute(statement.encode())
    seats.execute("select pgcombine.grant_right('read', %s, 'seats')", (role.info.user,))
    assert has(role) == {7: (8, 0)}
    seats.execute("select pgcombine_internal.regenerate('seats')")
    assert call(role, "take", 7, 1)
    seats.execute("select pgcombine.revoke_right('enqueue', %s, 'seats')", (role.info.user,))
    with pytest.raises(errors.InsufficientPrivilege):
        call(role, "take", 7, 1)


def test_worker_needs_no_more_than_its_right(seats: psycopg.Connection, dsn: str, login: Login) -> None:
    from support.roles import as_role

    role = login()
    seats.execute("select pgcombine.grant_right('work', %s)", (role.info.user,))
    make_budget(seats, "later")
    for budget in ("seats", "later"):
        call(seats, "add", 7, 10, budget=budget)
        call(seats, "hold", 7, 4, hold="a", for_at_most="1 ms", budget=budget)
    with workers(as_role(dsn, role.info.user)):
        for budget in ("seats", "later"):
            eventually(lambda budget=budget: rows(seats, f"{budget}_values") == [(7, 10, 0)], what="all is combined")


def test_operators_of_a_strange_search_path_are_not_called(seats: psycopg.Connection) -> None:
    seats.execute(
        "create schema evil; "
        "create function evil.lie(bigint, bigint) returns boolean language sql as 'select true'; "
        "create function evil.lie(int, int) returns boolean language sql as 'select true'; "
        "create operator evil.> (function = evil.lie, leftarg = bigint, rightarg = bigint); "
        "create operator evil.>= (function = evil.lie, leftarg = bigint, rightarg = bigint); "
        "create operator evil.= (function = evil.lie, leftarg = int, rightarg = int); "
        "set search_path = evil, pg_catalog, public"
    )
    call(seats, "add", 7, 5)
    call(seats, "add", 8, 5)
    assert not call(seats, "take", 7, 6)
    assert call(seats, "take", 7, 5)
    assert has(seats) == {8: (5, 0)}
    assert problems(seats) == []


def test_repeatable_read_raises_after_a_conflict(seats: psycopg.Connection, dsn: str) -> None:
    call(seats, "add", 7, 10)
    with psycopg.connect(dsn) as other:
        other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        other.execute("select 1")
        assert call(seats, "take", 7, 10)
        with pytest.raises(errors.SerializationFailure):
            call(other, "take", 7, 1)
        other.rollback()
        assert not call(other, "take", 7, 1)
