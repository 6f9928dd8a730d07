"""Exports that several servers have: an operator chooses the server that delivers.

Each server combines its own copy of a queue, and so has its own changes. The export's *owner* is the server whose
changes are delivered. A server that knows that another server is the owner writes no entries. A new owner begins a new
*epoch*, with an entry for every key that has a value (``pgcombine_internal.own_export``). The exporter ``postgres``
stores owner and epoch at the destination, which then refuses batches of an earlier epoch. With the other exporters, a
receiver can do the same: the epoch is in the high bits of the sequence numbers.
"""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import dataclass, field

import psycopg

from pgcombine.database.connect import Connection, one
from pgcombine.errors import PgCombineError, ReplicaError, first_line, translated
from pgcombine.handoff.connections import addresses, open_peer, registered

TIMEOUT_SECONDS = 10.0


@dataclass
class Owned:
    """The new owner of an export, and the epoch that the owner begins.

    ``told`` are the other servers that now know the owner, or that lack the export. ``unreached`` has the servers that
    couldn't be connected to, with the reasons. A server that knows of a later epoch is in neither.
    """

    export: str
    owner: str
    epoch: int
    told: list[str] = field(default_factory=list)
    unreached: dict[str, str] = field(default_factory=dict)


def own(connection: Connection, export: str, timeout: float = TIMEOUT_SECONDS) -> Owned:
    """Make the server at this connection the owner of the export, and inform the other registered servers.

    ``timeout``, in seconds, is for connecting to each of them. A server that can't be reached isn't informed. If this
    server has no name and no other servers are registered, the owner's name is empty. The new epoch also helps if the
    destination has later entries than this server, for example after a restore. If the call is killed, run it again.

    Raises ExportNotFoundError, and ReplicaError if other servers are registered but this server has no name.
    """
    with translated(), ExitStack() as opened:
        (epoch,) = one(connection, "select epoch from pgcombine_internal.require_export(%s)", export)
        name, replicas = addresses(connection)
        if name is None and replicas:
            raise ReplicaError(
                "this server hasn't been named yet: run this at a server that has taken replicated writes"
            )
        others: dict[str, Connection] = {}
        unreached = {}
        for other, dsn in replicas.items():
            try:
                peer = open_peer(other, registered(other, dsn), timeout)
                others[other] = opened.enter_context(closing(peer.connection))
            except (psycopg.Error, PgCombineError) as error:
                unreached[other] = first_line(error)
        for there in others.values():
            found = there.execute("select epoch from pgcombine.export where export = %s", (export,)).fetchone()
            epoch = max(epoch, found[0] if found else 0)
        (epoch,) = one(connection, "select pgcombine_internal.own_export(%s, %s, %s)", export, name, epoch + 1)
        done = Owned(export, name or "", epoch, unreached=unreached)
        for other, there in others.items():
            told = there.execute(
                "select pgcombine_internal.disown_export(export, %s, %s) from pgcombine.export where export = %s",
                (name, epoch, export),
            ).fetchone()
            if told is None or told[0]:
                done.told.append(other)
    return done
