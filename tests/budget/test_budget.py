"""``Budget`` in Python, and the verbs of ``pgcombine budget``."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from decimal import Decimal

import psycopg
import pytest
from sqlalchemy import create_engine
from support import run_cli
from support.budgets import has, make_budget, problems
from support.queues import one

from pgcombine import Budget
from pgcombine.budget import budgets
from pgcombine.errors import (
    InvalidDefinitionError,
    InvalidUpdateError,
    QueueExistsError,
    QueueNotEmptyError,
    QueueNotFoundError,
    WaitTimeoutError,
)

MINUTE = timedelta(minutes=1)


def test_calls_of_a_budget(conn: psycopg.Connection) -> None:
    stock = Budget("stock", key=["item text", "id int"], amount="numeric(14,2)")
    stock.create(conn)
    stock.create(conn, if_not_exists=True)
    chair, table = ("chair", 1), ("table", 2)
    for key in (chair, table):
        stock.add(conn, key, Decimal("10.50"))
    assert stock.take(conn, chair, 10)
    assert not stock.take(conn, chair, Decimal("0.51"))
    assert stock.take_all(conn, {chair: Decimal("0.25"), table: 1})
    assert not stock.take_all(conn, {chair: 1, table: 1})
    assert stock.hold(conn, table, 5, "a", MINUTE)
    assert stock.settle(conn, "a", Decimal("0.5"))
    assert not stock.settle(conn, "a")
    assert stock.totals(conn) == {"keys": 2, "available": Decimal("9.25"), "held": 0}
    assert stock.verify(conn) == []
    assert stock.queue.get(conn, [chair]) == {chair: (Decimal("0.25"), Decimal(0))}
    (found,) = budgets(conn)
    assert found == {"budget": "stock", "key": ["item text", "id integer"], "amount": "numeric(14,2)", "chips": 16}
    assert repr(stock) == "Budget('stock')"
    stock.drop(conn, force=True)
    assert budgets(conn) == []


def test_errors(conn: psycopg.Connection, dsn: str) -> None:
    seats = Budget("seats", key="show int")
    seats.create(conn)
    with pytest.raises(QueueExistsError):
        seats.create(conn)
    with pytest.raises(InvalidDefinitionError):
        Budget("other", key="show int", amount="money").create(conn)
    seats.add(conn, 7, 10)
    with pytest.raises(InvalidUpdateError):
        seats.take(conn, 7, -1)
    seats.hold(conn, 7, 1, "a", MINUTE)
    with pytest.raises(QueueExistsError):
        seats.hold(conn, 7, 1, "a", MINUTE)
    with pytest.raises(QueueNotEmptyError):
        seats.drop(conn)
    with psycopg.connect(dsn) as other:
        seats.take(other, 7, 8)
        for undecided in (
            lambda: seats.take(conn, 7, 5, wait=False),
            lambda: seats.take_all(conn, {7: 5}, wait=False),
            lambda: seats.hold(conn, 7, 5, "b", MINUTE, wait=False),
        ):
            with pytest.raises(WaitTimeoutError):
                undecided()
    with pytest.raises(QueueNotFoundError):
        Budget("unknown").verify(conn)


def test_take_is_part_of_the_callers_transaction(conn: psycopg.Connection, dsn: str) -> None:
    make_budget(conn)
    seats = Budget("seats")
    seats.add(conn, 7, 10)
    engine = create_engine(dsn.replace("postgresql://", "postgresql+psycopg://"))
    with engine.connect() as connection:
        assert seats.take(connection, 7, 3)
        connection.rollback()
        assert seats.take(connection, 7, 1)
        connection.commit()
    engine.dispose()

    async def take() -> bool:
        async with await psycopg.AsyncConnection.connect(dsn) as connection:
            return await seats.take(connection, 7, 2)

    assert asyncio.run(take())
    assert has(conn) == {7: (7, 0)}
    assert problems(conn) == []


def test_commands(conn: psycopg.Connection, dsn: str) -> None:
    def command(*words: str) -> str:
        done = run_cli("budget", *words, "--dsn", dsn)
        assert done.returncode == 0, done.stderr
        return done.stdout

    command("create", "seats", "--key", "show int", "--chips", "4")
    command("create", "seats", "--key", "show int", "--chips", "4", "--if-not-exists")
    Budget("seats").add(conn, 7, 10)
    assert json.loads(command("ls", "--json")) == [
        {"budget": "seats", "key": ["show integer"], "amount": "bigint", "chips": 4}
    ]
    shown = dict(line.split(":") for line in command("show", "seats").splitlines())
    assert {name: text.strip() for name, text in shown.items()} == {
        "budget": "seats",
        "key": "show integer",
        "amount": "bigint",
        "chips": "4",
        "keys": "1",
        "available": "10",
        "held": "0",
    }
    assert json.loads(command("show", "seats", "--json"))["available"] == 10
    assert command("verify", "seats") == "verified: seats\n"
    conn.execute("insert into pgcombine.seats_updates (show, available) values (7, 1)")
    wrong = run_cli("budget", "verify", "seats", "--dsn", dsn)
    assert (wrong.returncode, wrong.stderr) == (1, 'pgcombine: budget "seats" has 1 problem\n')
    assert "(7)" in wrong.stdout
    asked = run_cli("budget", "drop", "seats", "--dsn", dsn)
    assert "10 available" in asked.stderr
    command("drop", "seats", "--yes", "--force")
    assert one(conn, "select count(*) from pgcombine.queue") == 0
    for verb in ("show", "drop"):
        missing = run_cli("budget", verb, "seats", "--dsn", dsn)
        assert missing.returncode == 1
        assert 'there is no budget "seats"' in missing.stderr
