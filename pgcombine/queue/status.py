"""Facts about queues for people and programs, such as definitions, backlog, lag, quarantine and contents.

``lag_seconds`` is the age of the oldest pending update, to about a second, also in a paused queue; 0 if no update is
pending.
``definition``, ``columns`` and ``pass_sql`` raise QueueNotFoundError for an unknown queue.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, LiteralString, NamedTuple

from psycopg import sql

from pgcombine.database.connect import Connection, dicts, one
from pgcombine.database.sqlfiles import query
from pgcombine.errors import translated


def definitions(connection: Connection) -> list[dict[str, Any]]:
    """Return the definition of every queue, a dict.

    It has ``queue``, ``key``, ``value``, the options of ``pgcombine.create_queue``, ``paused`` and ``created_at``.
    """
    return dicts(connection, query("queue_definitions"))


def definition(connection: Connection, queue: str) -> dict[str, Any]:
    """Return the definition of one queue. Raises QueueNotFoundError."""
    _require(connection, queue)
    return next(found for found in definitions(connection) if found["queue"] == queue)


class Column(NamedTuple):
    """A column of a queue. ``role`` is ``key`` or ``value``. ``type`` is the type in the queue's definition.

    ``base`` is the type without domain and modifiers; for an array it is the type of the elements. ``scale`` is the
    number of digits after the point to which PostgreSQL rounds values, or None.
    """

    name: str
    role: str
    type: str
    base: str
    is_array: bool
    scale: int | None


def columns(connection: Connection, queue: str) -> list[Column]:
    """Return the queue's columns, keys first. Raises QueueNotFoundError."""
    _require(connection, queue)
    return [Column(*row) for row in connection.execute(query("queue_columns"), {"queue": queue})]


def _require(connection: Connection, queue: str) -> None:
    with translated(queue=queue):
        connection.execute("select pgcombine_internal.require_queue(%s)", (queue,))


def pass_sql(connection: Connection, queue: str) -> str:
    """Return the statement that passes over the queue's bucket 0 run. Raises QueueNotFoundError."""
    with translated(queue=queue):
        return str(one(connection, "select pgcombine.combine_sql(%s, 0)", queue)[0])


def status(connection: Connection, *, fresh: bool = False) -> list[dict[str, Any]]:
    """Return a dict for each queue, about its backlog, its passes, its quarantine and its failing buckets.

    The dict has ``queue``, ``paused``, ``backlog``, ``lag_seconds``, ``buckets`` (a list of ``bucket`` and
    ``backlog``), the counts ``quarantined_keys`` and ``quarantined_updates``, ``failing_buckets``, and the rates and
    times of ``pgcombine.queue_stat``. ``failing_buckets`` has ``bucket``, ``attempts``, ``sqlstate``, ``error``,
    ``since`` and ``retry_at`` of each bucket where a pass has failed and none has taken all updates since. ``backlog``
    was counted at ``pending_at``. With ``fresh`` the call counts anew, except for queues whose tables are locked.
    Raises NotGrantedError if the role lacks the right monitor.
    """
    if fresh:
        with connection.transaction():
            connection.execute("set local pgcombine.fresh = on")
            return _status(connection)
    return _status(connection)


def require_monitor(connection: Connection) -> None:
    """Raise NotGrantedError if the role lacks the right monitor. The error of a view doesn't tell which right it is."""
    with translated():
        connection.execute("select pgcombine_internal.require_right(null, 'monitor')")


def _status(connection: Connection) -> list[dict[str, Any]]:
    require_monitor(connection)
    result: dict[str, dict[str, Any]] = {
        entry["queue"]: {**entry, "buckets": [], "failing_buckets": []}
        for entry in dicts(connection, query("status_queues"))
    }
    for row in dicts(connection, query("status_buckets")):
        if entry := result.get(row.pop("queue"), {}):
            entry["buckets"].append(row)
    for row in dicts(connection, query("failing_buckets")):
        if entry := result.get(row.pop("queue"), {}):
            entry["failing_buckets"].append(row)
    return list(result.values())


def workers(connection: Connection) -> list[dict[str, Any]]:
    """Return a dict for each connected worker.

    It has ``worker``, ``role``, ``since``, ``queues`` (None: all), ``state`` and ``pids``.
    """
    return dicts(connection, query("workers"))


def late(found: list[dict[str, Any]], max_lag: float) -> list[dict[str, Any]]:
    """Choose the queues of :func:`status` whose lag is above ``max_lag`` seconds, worst first."""
    above = [entry for entry in found if entry["lag_seconds"] > max_lag]
    return sorted(above, key=lambda entry: -float(entry["lag_seconds"]))


def unattended(found: list[dict[str, Any]], seen: list[dict[str, Any]], seconds: float) -> list[dict[str, Any]]:
    """Choose the queues of :func:`late` that nobody works on.

    Such a queue isn't paused, no worker of ``seen`` (see :func:`workers`) has all its connections and works on it, and
    no pass over it that took updates has ended in the last ``seconds``.
    """
    since = datetime.now(UTC) - timedelta(seconds=seconds)
    ready = [worker["queues"] for worker in seen if worker["state"] != "connecting"]
    return [
        entry
        for entry in late(found, seconds)
        if not entry["paused"]
        and (entry["last_pass_at"] is None or entry["last_pass_at"] < since)
        and not any(queues is None or entry["queue"] in queues for queues in ready)
    ]


def quarantined(connection: Connection, queue: str) -> tuple[int, int]:
    """Return the number of quarantined keys of the queue, and the number of their updates."""
    keys, updates = one(
        connection, "select count(*), coalesce(sum(updates), 0) from pgcombine.quarantined_key where queue = %s", queue
    )
    return int(keys), int(updates)


class Contents(NamedTuple):
    """Counts of the data that a drop of the queue would delete.

    ``waiting`` counts the rows of the tables that components have for the queue.
    """

    queue: str
    values: int
    pending: int
    quarantined_keys: int
    quarantined_updates: int
    waiting: int


def contents(connection: Connection, queue: str | None = None) -> list[Contents]:
    """Count, row by row, the contents of a queue, or of every queue for None.

    The result is empty if there is no such queue, or no schema.
    """

    def relation(name: str) -> bool:
        return numbers("select (to_regclass(%s) is not null)::int", f"pgcombine.{name}") == [1]

    def numbers(statement: LiteralString | sql.Composed, *parameters: str | None) -> list[int]:
        return [int(number) for number in one(connection, statement, *parameters)]

    def counted(table: str) -> int:
        return numbers(sql.SQL("select count(*) from {}").format(sql.Identifier("pgcombine", table)))[0]

    if not relation("queue"):
        return []
    held = "select count(*), coalesce(sum(updates), 0) from pgcombine.quarantine where queue = %s"
    names = "select queue from pgcombine.queue where queue = coalesce(%s, queue) order by queue"
    found = []
    for (name,) in connection.execute(names, (queue,)).fetchall():
        tables = connection.execute("select name from pgcombine.component_table where queue = %s", (name,)).fetchall()
        keys, updates = numbers(held, name) if relation("quarantine") else (0, 0)
        (pending,) = numbers("select pgcombine.backlog(%s)", name)
        waiting = sum(counted(table) for (table,) in tables)
        found.append(Contents(name, counted(f"{name}_values"), pending, keys, updates, waiting))
    return found
