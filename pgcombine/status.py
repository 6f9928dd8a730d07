"""Figures about queues for people and programs: definitions, backlog, lag.

``lag_seconds`` is the age of the oldest pending update, to about a second, 0 when there are none: see
``pgcombine.bucket_status``.
"""

from __future__ import annotations

from typing import Any

from pgcombine.database import Connection, dicts
from pgcombine.errors import QueueNotFound, translated
from pgcombine.sqlfiles import query


def definitions(connection: Connection) -> list[dict[str, Any]]:
    """The definition of every queue: ``key``, ``value`` and the options of ``pgcombine.create_queue``."""
    return dicts(connection, query("queue_definitions"))


def definition(connection: Connection, queue: str) -> dict[str, Any]:
    """The definition of one queue. Raises QueueNotFound."""
    for found in definitions(connection):
        if found["queue"] == queue:
            return found
    raise QueueNotFound(f'there is no queue "{queue}" (pgcombine queue ls lists them)', queue=queue)


def pass_sql(connection: Connection, queue: str) -> str:
    """The statement that a pass over the queue's first bucket runs. Raises QueueNotFound."""
    with translated(queue=queue):
        row = connection.execute("select pgcombine.combine_sql(%s, 0)", (queue,)).fetchone()
    assert row is not None
    return str(row[0])


def status(connection: Connection) -> list[dict[str, Any]]:
    """Per queue: ``queue``, ``paused``, ``backlog``, ``lag_seconds`` and ``buckets`` (``bucket``, ``backlog``)."""
    connection.execute("select pgcombine.tick()")  # so that who looks next can tell how old these are
    result: dict[str, dict[str, Any]] = {}
    for queue, paused, bucket, backlog, lag in connection.execute(query("status")):
        entry = result.setdefault(
            queue, {"queue": queue, "paused": paused, "backlog": 0, "lag_seconds": 0.0, "buckets": []}
        )
        entry["backlog"] += backlog
        entry["buckets"].append({"bucket": bucket, "backlog": backlog})
        entry["lag_seconds"] = max(entry["lag_seconds"], float(lag))
    return list(result.values())


def workers(connection: Connection) -> list[dict[str, Any]]:
    """Per connected worker: ``worker``, ``role``, ``since``, ``queues`` (None: all), ``state`` and ``pids``."""
    return dicts(
        connection, "select worker, role, since, queues, state, pids from pgcombine.worker order by worker, role"
    )


def late(found: list[dict[str, Any]], max_lag: float) -> list[dict[str, Any]]:
    """Those of :func:`status` whose lag is above ``max_lag`` seconds, the worst first; paused queues don't count."""
    above = [entry for entry in found if not entry["paused"] and entry["lag_seconds"] > max_lag]
    return sorted(above, key=lambda entry: -float(entry["lag_seconds"]))
