"""Exports that several servers have: an operator chooses the server that delivers.

Each server combines its own copy of a queue, and so has its own changes. Only the changes of the export's *owner* are
delivered. The other servers write no entries. A new owner begins a new *epoch*, with an entry for every key
(``pgcombine_internal.own_export``). This isn't consensus: the destination decides which server it accepts. The exporter
``postgres`` stores owner and epoch at the destination, which then refuses batches of a former owner that doesn't know
of the change. For all exporters, the epoch is in the high bits of the sequence numbers. So a receiver that stores the
highest sequence number of each key also ignores the entries of a former owner.
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

    ``told`` are the servers that know of the new owner, or lack the export. ``unreached`` has the servers that couldn't
    be connected to, with the reasons.
    """

    export: str
    owner: str
    epoch: int
    told: list[str] = field(default_factory=list)
    unreached: dict[str, str] = field(default_factory=dict)


def own(connection: Connection, export: str, timeout: float = TIMEOUT_SECONDS) -> Owned:
    """Make the server at this connection the owner of the export, and inform the other registered servers.

    ``timeout``, in seconds, bounds connecting to each of them. A server that can't be reached isn't informed, but a
    destination of the exporter ``postgres`` refuses its deliveries after the new owner's first. If the call is killed,
    run it again.

    A single server that has no name becomes the owner with an empty name. The new epoch helps if the destination has
    later entries than the server, for example after a restore.

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
