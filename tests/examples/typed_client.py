"""A user's program that uses public names. mypy --strict accepts it and its calls of ``assert_type``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, assert_type

import psycopg
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession

import pgcombine
from pgcombine import (
    Change,
    ChangeStream,
    CombineQueue,
    Entry,
    Exporter,
    ExportQueue,
    ExportWorker,
    PgCombineError,
    Replayer,
    ReplicatedQueue,
    Worker,
    drain,
)
from pgcombine.errors import ConfigError, DestinationDownError, OperationalError
from pgcombine.handoff.replicated import Receipt
from pgcombine.worker.totals import Totals

SALES = CombineQueue("sales", key=["product text"], value=["units bigint sum"])


@SALES.on_change
def announce(tx: psycopg.Connection[Any], changes: ChangeStream) -> int:
    for change in changes:
        assert_type(change, Change)
    return len(changes)


@SALES.on_change(name="other")
def log_changes(tx: psycopg.Connection[Any], changes: ChangeStream) -> str:
    return f"{len(changes)} changes"


def keeps_its_type(tx: psycopg.Connection[Any], changes: ChangeStream) -> None:
    assert_type(announce(tx, changes), int)
    assert_type(log_changes(tx, changes), str)


def connect() -> psycopg.Connection[Any]:
    return psycopg.connect(dbname="shop", password=os.environ["TOKEN"])


class Printer:
    """An exporter."""

    def __init__(self, target: str | None, export: str) -> None:
        self.target = target or export

    def deliver(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            print(self.target, entry.seq, entry.json)

    def close(self) -> None: ...


def sell(connection: psycopg.Connection[Any] | sqlalchemy.Connection, product: str) -> None:
    assert_type(SALES.enqueue(connection, [{"product": product, "units": 1}]), int)
    assert_type(SALES.get(connection, [product]), dict[Any, Any])


async def sell_async(session: AsyncSession, product: str) -> None:
    assert_type(await SALES.enqueue(session, [(product, 1)]), int)
    assert_type(await ExportQueue("sales").backlog(session), int)


def export(connection: psycopg.Connection[Any]) -> None:
    queue = ExportQueue("sales_out", queue="sales")
    queue.create(connection)
    assert_type(queue.backlog(connection), int)
    assert_type(queue.retry_quarantined(connection, 7), int)
    assert_type(queue.quarantined(connection), list[dict[str, Any]])
    assert_type(ExportWorker(connect, "sales_out", Printer).drain(), int)
    chosen: type[Exporter] = Printer
    with ExportWorker("dbname=shop", "sales_out", exporter=chosen) as worker:
        assert_type(worker, ExportWorker)


def work() -> None:
    with Worker(connect, SALES) as worker, Replayer("dbname=shop"):
        assert_type(worker.totals, Totals)
    try:
        assert_type(drain(connect, SALES), Totals)
    except OperationalError as error:
        assert_type(error.hint, str | None)
    except (ConfigError, DestinationDownError, PgCombineError) as error:
        print(error.queue, error.sqlstate)


def replicate() -> None:
    with ReplicatedQueue({"a": "host=a", "b": "host=b"}, "sales") as queue:
        assert_type(queue.enqueue([("tea", 1)]), Receipt)
    assert_type(pgcombine.__version__, str)
