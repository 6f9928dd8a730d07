"""An operator's actions on the other servers and the hints for them, over a connection to the coordinator.

Errors that pgcombine's SQL functions raise become classes of :mod:`pgcombine.errors`. The functions that change
something, except :func:`add`, raise ReplicaError or DestinationNotFoundError if the server isn't registered.
"""

from __future__ import annotations

from contextlib import closing, suppress
from typing import Any
from uuid import UUID

import psycopg

from pgcombine.config import libpq_dsn
from pgcombine.database.connect import Connection, dicts, one
from pgcombine.database.sqlfiles import query
from pgcombine.errors import PgCombineError, ReplicaError, translated
from pgcombine.handoff.connections import addresses, open_peer, registered
from pgcombine.runtime.destinations import Destination


def add(
    connection: Connection,
    name: str,
    dsn: str,
    *,
    max_rows: int | None = None,
    max_bytes: int | None = None,
    when_full: str | None = None,
    new_identity: bool = False,
) -> None:
    """Register a server, or change its registration.

    ``max_rows`` and ``max_bytes`` are the quota of the hints for the server, and ``when_full`` says what happens when
    the quota is reached (None: no change, or the default). ``new_identity`` says that another server has taken the
    place of the registered one.

    Raises ReplicaError for an invalid name or quota, for the name of this server, and for an address with a password or
    a parameter that an address may not set. Raises ConfigError if ``dsn`` isn't a connection string.
    """
    with translated():
        connection.execute(
            "select pgcombine_internal.handoff_register(%s, %s, %s, %s, %s, %s)",
            (name, libpq_dsn(dsn), max_rows, max_bytes, when_full, new_identity),
        )


def ls(connection: Connection) -> list[dict[str, Any]]:
    """Return the other servers: registration, state, and the numbers of waiting and delivered writes of each."""
    return dicts(connection, query("handoff_replicas"))


def remove(connection: Connection, name: str, *, timeout: float = 10.0) -> bool:
    """Remove a server's registration.

    Returns whether the server answered, and had no hints for other servers and no updates that these refused. If the
    server doesn't answer within ``timeout`` seconds, and writers may have named it, the remaining servers are marked as
    in need of repair: some may lack writes that the removed server acknowledged. Raises ReplicaError while hints for
    the server, or updates that it refused, are here. Also raises ReplicaError if the server answers and has hints for
    other servers, or updates that these refused.
    """
    hints = None
    _, others = addresses(connection)
    if name in others:
        with suppress(psycopg.Error, PgCombineError):
            peer = open_peer(name, registered(name, others[name]), timeout)
            with closing(peer.connection), peer.connection.within(timeout):
                (hints,) = one(peer.connection, query("handoff_waiting").encode())
    if hints:
        raise ReplicaError(
            f'server "{name}" has hints of {hints} writes for others, or updates that they refused: first '
            "deliver or drop them at that server (pgcombine replicas replay, replicas quarantine), or stop that "
            "server if it is lost"
        )
    with translated():
        connection.execute("select pgcombine_internal.handoff_unregister(%s, %s)", (name, hints == 0))
    return hints == 0


def status(connection: Connection, name: str | None = None) -> list[dict[str, Any]]:
    """Return the state of each server, or of ``name``, with the numbers of waiting and delivered writes.

    Raises ReplicaError if ``name`` isn't registered.
    """
    rows = dicts(
        connection, "select * from pgcombine.handoff where destination = coalesce(%s, destination) order by 1", (name,)
    )
    if name is not None and not rows:
        raise ReplicaError(f'server "{name}" is not registered here (pgcombine replicas ls lists the servers)')
    return rows


def own_state(connection: Connection) -> list[str]:
    """Return lines of text about problems of this server (see the query ``handoff_own_state``)."""
    return [line for (line,) in connection.execute(query("handoff_own_state").encode())]


def hints_for(connection: Connection, name: str, limit: int) -> list[dict[str, Any]]:
    """Return the hints for a server, ``limit`` at most and in the order of their tokens, with their updates."""
    return dicts(connection, query("handoff_hints"), (name, limit))


def quarantined(
    connection: Connection, name: str | None, limit: int, token: UUID | None = None
) -> list[dict[str, Any]]:
    """Return at most ``limit`` updates that the server ``name`` refused; None: updates that any server refused.

    With ``token``, return only the updates of that write.
    """
    return dicts(connection, query("handoff_quarantined"), (name, token, limit))


def pause(connection: Connection, name: str) -> None:
    """Stop the replayers' deliveries to a server. The hints for it stay.

    A replayer that is delivering to the server first goes through all waiting hints.
    """
    Destination(connection, "server", name).pause("manually")


def resume(connection: Connection, name: str) -> None:
    """Let the replayers' deliveries to a server go on after a pause or a failure."""
    Destination(connection, "server", name).resume()


def retry_quarantined(connection: Connection, name: str, token: UUID | None = None, number: int | None = None) -> int:
    """Turn updates that a server refused into hints. Returns their number.

    By default these are all updates that the server refused. With ``token`` they are those of one write, and with
    ``number`` one update of that write. Raises NotQuarantinedError if ``token`` is given and no such update is
    quarantined. Raises ReplicaError while the server needs repair, or a rebuild or a repair hasn't ended.
    """
    with translated():
        return int(one(connection, "select pgcombine_internal.handoff_retry(%s, %s, %s)", name, token, number)[0])


def drop_quarantined(
    connection: Connection, name: str, reason: str, token: UUID | None = None, number: int | None = None
) -> int:
    """Delete updates that a server refused, chosen as in :func:`retry_quarantined`. Returns their number.

    If there were some, the server then needs repair. Raises NotQuarantinedError if ``token`` is given and no such
    update is quarantined, and ReplicaError if the reason is empty.
    """
    with translated():
        return int(
            one(connection, "select pgcombine_internal.handoff_discard(%s, %s, %s, %s)", name, reason, token, number)[0]
        )


def truncate(connection: Connection, name: str, reason: str) -> int:
    """Delete all hints and quarantined updates for a server. Returns the number of deleted updates.

    If there were some, the server then needs repair. Raises ReplicaError if the reason is empty.
    """
    with translated():
        statement = "select pgcombine_internal.handoff_discard(%s, %s, hints => true)"
        return int(one(connection, statement, name, reason)[0])
