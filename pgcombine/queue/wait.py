"""Waiting until updates are combined.

``pgcombine.wait`` commits between its polls, so it can't run in the caller's transaction. The connection must be a
psycopg connection (otherwise ConfigError is raised) that is in no transaction (otherwise InvalidDefinitionError).
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from pgcombine.errors import ConfigError, InvalidDefinitionError, translated

_CALL = "call pgcombine.wait(%s, %s * interval '1 second')"


def wait(connection: Any, queue: str, timeout: float | None) -> Coroutine[Any, Any, None] | None:
    """Return when all updates that were committed before the call are combined.

    On an asynchronous connection the function returns a coroutine. ``timeout`` is in seconds; None means no limit.
    Raises WaitTimeoutError, QueueNotFoundError, InvalidDefinitionError in a transaction, and ConfigError for a
    connection that isn't psycopg's.
    """
    if not isinstance(connection, (psycopg.Connection, psycopg.AsyncConnection)):
        raise ConfigError(
            f'waiting for queue "{queue}" needs a psycopg connection, not {type(connection).__name__}: the other '
            "connections begin a transaction, in which the call can't run"
        )
    if connection.info.transaction_status != TransactionStatus.IDLE:
        raise InvalidDefinitionError(
            f'can\'t wait for queue "{queue}" in a transaction, whose updates are combined only after its commit: '
            "commit first",
            queue=queue,
        )
    if isinstance(connection, psycopg.AsyncConnection):
        return _wait_async(connection, queue, timeout)
    before = connection.autocommit
    connection.autocommit = True
    try:
        with translated(queue=queue):
            connection.execute(_CALL, (queue, timeout), prepare=False)
    finally:
        if connection.pgconn.transaction_status == TransactionStatus.ACTIVE:
            # An interrupt came before psycopg read the answer. The connection can't be used any more.
            connection.close()
        elif not connection.closed:
            connection.autocommit = before
    return None


async def _wait_async(connection: psycopg.AsyncConnection[Any], queue: str, timeout: float | None) -> None:
    before = connection.autocommit
    await connection.set_autocommit(True)
    try:
        with translated(queue=queue):
            await connection.execute(_CALL, (queue, timeout), prepare=False)
    finally:
        if connection.pgconn.transaction_status == TransactionStatus.ACTIVE:
            await connection.close()
        elif not connection.closed:
            await connection.set_autocommit(before)
