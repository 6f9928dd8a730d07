"""Move a shard of a front from one node to another (``sql/shard``).

A move has these steps. A move that was killed can be run again.

1. The front's catalog records the target, which must have no queue of the shard's name. Passes on the source combine
   updates until none is pending, or until half a minute is over.
2. Writers of the shard wait at the front, until step 5 ends.
3. The queue on the source gets a fence: it refuses updates, also after this program has died. Passes combine the rest.
   Then the queue refuses values, too.
4. One transaction on the target makes the queue, and loads values and tokens.
5. One transaction on the front puts the target in the place of the source.
6. The source drops its queue, if the target has one.

The catalog of a restored front may be older than its nodes. So a queue is dropped only if it refuses updates, or if it
wasn't used since it was copied.
"""

from __future__ import annotations

from contextlib import closing, suppress
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from pgcombine.database.connect import Connection, Database, connect, one
from pgcombine.database.sqlfiles import query
from pgcombine.errors import PgCombineError, WaitTimeoutError, translated
from pgcombine.worker.drain import drain

_FIRST_DRAIN_SECONDS = 30  # for the drain before writers wait
_SETTINGS = {
    "synchronous_commit": "on",  # the source drops its queue only when the target's can't be lost
    "lock_timeout": "10s",  # others wait behind a lock that this program waits for
}


def move_shard(dsn: Database, queue: str, shard: int, node: str) -> None:
    """Move a shard to the foreign server ``node``. Writers of this shard wait in steps 2 to 5 (see the module).

    The same call again completes a move that was killed. A move to the node that has the shard cancels a move that
    hasn't switched the shard to another node. The caller's user mappings must name roles that own pgcombine's schema on
    the nodes.

    Among others, raises QueueNotFoundError for an unknown front, InvalidDefinitionError for an unknown shard or node,
    QueueNotEmptyError if a move would lose something, such as the shard's observers, QueueExistsError if the node has a
    queue of the shard's name, WaitTimeoutError if another session moves the shard, psycopg's LockNotAvailable if a
    transaction that has used the shard stays open for ten more seconds, and ConnectError if a node can't be reached.
    """
    with translated(queue=queue), closing(_session(dsn)) as front:
        name, source, target, former = _begin(front, queue, shard, node)
        if former is not None:
            _end(front, queue, shard, name, former, source)
            name, source, target, former = _begin(front, queue, shard, node)
        if source != node:
            _move(front, queue, shard, name, source, node, resumed=target is not None)
        else:
            _cancel(front, queue, shard, name, source, target)


def _session(dsn: Database) -> Connection:
    connection = connect(dsn, name="pgcombine move-shard")
    for setting in _SETTINGS.items():
        connection.execute("select set_config(%s, %s, false)", setting)
    return connection


def _begin(front: Connection, queue: str, shard: int, node: str) -> tuple[Any, ...]:
    return one(front, "select * from pgcombine_internal.begin_move(%s, %s, %s)", queue, shard, node)


def _move(front: Connection, queue: str, shard: int, name: str, source: str, node: str, *, resumed: bool) -> None:
    address = _address(front, source)
    with closing(_session(address)) as leaving, closing(_session(_address(front, node))) as arriving:
        leaving.execute("select pgcombine_internal.require_movable(%s)", (name,))
        if resumed:  # the target may have the queue that an earlier attempt made
            arriving.execute("select pgcombine_internal.drop_shard(%s, false)", (name,))
        else:
            arriving.execute("select pgcombine_internal.require_no_queue(%s)", (name,))
            front.execute(query("shard_aim"), (node, queue, shard))
        with suppress(WaitTimeoutError):  # writers go on, so the drain may not end in time
            drain(address, name, timeout=_FIRST_DRAIN_SECONDS)
        with front.transaction():  # if the commit fails, its outcome is unknown, and the fence stays
            try:
                front.execute("select pgcombine_internal.lock_shard(%s, %s)", (queue, shard))
                _fence(leaving, name, "updates")
                drain(address, name)
                _fence(leaving, name, "updates", "values")
                _copy(leaving, arriving, name)
                front.execute("select pgcombine_internal.switch_shard(%s, %s)", (queue, shard))
            except (PgCombineError, psycopg.Error, KeyboardInterrupt):
                if _locked(front):  # the writers wait until the rollback, and then meet no fence
                    with closing(_session(address)) as again:  # the session `leaving` may be lost
                        _fence(again, name)
                raise
    _end(front, queue, shard, name, source, node)


def _fence(node: Connection, name: str, *tables: str) -> None:
    """Make these tables of the shard's queue refuse inserts, and the others accept them."""
    node.execute("select pgcombine_internal.fence_shard(%s, %s)", (name, list(tables)))


def _locked(front: Connection) -> bool:
    """Whether the front's session is alive. If it isn't, another session may move the shard, and need the fence."""
    try:
        front.execute("select")
    except psycopg.errors.InFailedSqlTransaction:
        return True
    except psycopg.Error:
        return False
    return True


def _copy(leaving: Connection, arriving: Connection, name: str) -> None:
    """Make the queue on the target, with values and tokens, in one transaction."""
    with leaving.transaction(), arriving.transaction():
        statements = leaving.execute("select * from pgcombine_internal.copy_shard(%s)", (name,)).fetchall()
        for reading, writing in statements:
            if reading is None:
                arriving.execute(writing)
                continue
            with (
                leaving.cursor() as source,
                arriving.cursor() as target,
                source.copy(reading) as rows,
                target.copy(writing) as copy,
            ):
                for block in rows:
                    copy.write(block)


def _end(front: Connection, queue: str, shard: int, name: str, former: str, node: str) -> None:
    """Drop the queue on the node that the shard has left. Raises QueueNotFoundError if the shard's node lacks it."""
    with closing(_session(_address(front, node))) as arrived:
        arrived.execute("select pgcombine_internal.require_queue(%s)", (name,))
    with closing(_session(_address(front, former))) as left:
        left.execute("select pgcombine_internal.drop_shard(%s, true)", (name,))
    front.execute(query("shard_aim"), (None, queue, shard))


def _cancel(front: Connection, queue: str, shard: int, name: str, source: str, target: str | None) -> None:
    """Let the source accept updates again, and drop what an earlier move has made on its target.

    If the source refuses updates, but the catalog knows of no move, raises QueueExistsError if another node has a queue
    of this name: that could be the shard.
    """
    with closing(_session(_address(front, source))) as staying:
        if target is None:
            if not one(staying, "select pgcombine_internal.fenced(%s)", name)[0]:
                return
            for node, address in front.execute(query("shard_nodes")).fetchall():
                if node != source:
                    with closing(_session(make_conninfo(**address))) as other:
                        other.execute("select pgcombine_internal.require_no_queue(%s)", (name,))
        _fence(staying, name)
    if target is not None:
        with closing(_session(_address(front, target))) as arriving:
            arriving.execute("select pgcombine_internal.drop_shard(%s, false)", (name,))
    front.execute(query("shard_aim"), (None, queue, shard))


def _address(front: Connection, node: str) -> str:
    (address,) = one(front, "select pgcombine_internal.node_address(%s)", node)
    return make_conninfo(**address)
