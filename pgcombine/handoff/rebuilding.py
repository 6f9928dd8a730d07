"""Rebuilding a server from other servers: an empty server, or a server that hints can't make complete any more.

The server gets a copy of the others' queues: values, updates that are pending or in quarantine, and the tokens of their
writes. Writers go on with the other servers. The steps are:

1. The server stops taking writes, and waits for those in progress.
2. Each coordinator marks the server as in need of repair, with the id of this rebuild, and the rebuild waits for the
   writes in progress at the coordinator. If the server needs repair for another reason later, the coordinator removes
   the id from the mark, so that step 5 leaves the mark.
3. The hints that wait now for the sources are delivered. So the sources have the writes that began before step 2.
4. The sources are read, each in one snapshot, and the server's queues are replaced in one transaction. A write that
   began after step 2 is in the copy, or in a hint for the server, or in both. If it is in both, its token keeps it
   from counting twice. If one source has a write that another lacks, the server records that it has only a part of
   the write (``handoff_partial``).
5. The server gets a new id. The coordinators store this id, and remove the marks with this rebuild's id, unless a
   source needs repair. They also adapt their quarantines (``handoff_repair_end``).

If the rebuild is killed, or doesn't reach all coordinators, run it again. Until the server's transaction commits, its
queues are unchanged. Coordinators that don't know the new id deliver nothing to the server.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import psycopg
from psycopg.types.json import Jsonb

from pgcombine.database.connect import Connection, one
from pgcombine.database.sqlfiles import query
from pgcombine.errors import ReplicaError, ReplicationError, translated
from pgcombine.handoff.connections import address, addresses, known_servers
from pgcombine.handoff.copying import copy_queue, snapshot
from pgcombine.handoff.rebuild_plan import Plan
from pgcombine.handoff.replayer import Replayer
from pgcombine.handoff.verifying import differing

log = logging.getLogger("pgcombine.handoff")

TIMEOUT_SECONDS = 600.0
_POLL_SECONDS = 0.05
# the servers that writers of all queues have named, and that need no repair
_COMPLETE = """
select r.name from pgcombine.handoff_replica r
where r.needs_repair is null
  and (select bool_and(coalesce(r.name = any (q.servers), false)) from pgcombine.handoff_queue q)
"""


@dataclass
class Rebuilt:
    """The result of a rebuild.

    ``values``, ``updates`` and ``tokens`` count what was copied, but ``tokens`` leaves out writes that were copied in
    part. ``unreached`` has the coordinators that don't know the server's new id, with the reasons. ``unrepaired`` are
    the coordinators at which the server still needs repair, for example because a source needs repair.
    """

    server: str
    sources: tuple[str, ...]
    queues: tuple[str, ...] = ()
    values: int = 0
    updates: int = 0
    tokens: int = 0
    unreached: dict[str, str] = field(default_factory=dict)
    unrepaired: list[str] = field(default_factory=list)


def rebuild(
    coordinator: Connection,
    coordinator_dsn: str,
    name: str,
    sources: Sequence[str] = (),
    *,
    force: bool = False,
    timeout: float = TIMEOUT_SECONDS,
) -> Rebuilt:
    """Rebuild the server ``name``, registered at the coordinator, from ``sources``.

    By default the sources are all other servers that answer. ``force`` is needed in three cases: a source needs repair
    (the rebuilt server then needs repair, too), the server has writes that its sources lack (the rebuild loses these
    writes), or a registered server doesn't answer. ``timeout``, in seconds, is for writes in progress at the
    coordinators and for the hints that the sources get first.

    Raises ReplicaError for servers that aren't registered and for unfit sources, ReplicationError when the time is up
    or deliveries to a source are paused, other subclasses of ReplicationError, SchemaError, and psycopg's errors.
    """
    own, dsns = known_servers(coordinator, coordinator_dsn)
    if name not in dsns or name == own:
        raise ReplicaError(
            f'server "{name}" is not registered here (run this with the --dsn of another server that knows it; '
            "pgcombine replicas ls lists the servers that a server knows)"
        )
    for source in sources:
        if source not in dsns or source == name:
            raise ReplicaError(f'"{source}" can\'t be a source: name another server that is registered here')
    with ExitStack() as stack:
        plan = Plan(stack, dsns, name, list(sources), force)
        return _Rebuild(plan, time.monotonic() + timeout).run(force)


class _Rebuild:
    def __init__(self, plan: Plan, deadline: float) -> None:
        self._plan = plan
        self._deadline = deadline
        self._repair = uuid4()
        self._target = plan.target
        self._done = Rebuilt(plan.name, tuple(plan.sources), unreached=plan.unreached)

    def run(self, force: bool) -> Rebuilt:
        if not force:
            self._plan.refuse_loss()
        marks = self._plan.refuse_incomplete()
        with translated(), self._target.transaction():
            self._target.execute("select pgcombine_internal.handoff_rebuild_begin()")
            if not force:
                self._plan.refuse_loss()  # a write may have come since the first check; now the server takes none
            self._announce()
            self._deliver_hints()
            self._copy()
            self._inform()
            quarantined = self._quarantined()
            id, epoch = self._end()
        done = self._done
        log.info("handoff.rebuilt server=%s sources=%s tokens=%d", self._plan.name, ",".join(done.sources), done.tokens)
        self._notify(id, epoch, quarantined, marks)
        return done

    def _announce(self) -> None:
        """Let each coordinator mark the server, with the id of this rebuild, and wait for its writes in progress."""
        where = address(self._plan.dsns[self._plan.name])
        for coordinator, connection in self._plan.others():
            with translated():
                connection.execute(
                    "select pgcombine_internal.handoff_repair_begin(%s, %s, %s)", (self._plan.name, where, self._repair)
                )
            writers = query("handoff_writers").encode()
            before = set(connection.execute(writers))
            while before.intersection(connection.execute(writers)):
                self._wait(f'writes at "{coordinator}" are still open')

    def _deliver_hints(self) -> None:
        """Deliver the hints that wait now for the sources."""
        for coordinator, peer in self._plan.coordinators.items():
            (now,) = one(peer.connection, "select clock_timestamp()")
            for source in self._plan.sources:
                if source != coordinator:
                    self._deliver(coordinator, peer.connection, source, now)

    def _deliver(self, coordinator: str, connection: Connection, source: str, until: datetime) -> None:
        """Deliver the hints for a source that the coordinator had at the time ``until``."""
        replayer = Replayer(self._plan.dsns[coordinator], [source], min_age=0.2)
        while True:
            count, state, reason = one(connection, query("handoff_delivering").encode(), source, until)
            if not count:
                return
            if state == "paused":
                raise ReplicationError(
                    f'{count} hints for "{source}" wait at "{coordinator}", where deliveries are paused: {reason} '
                    "(pgcombine replicas resume)"
                )
            self._wait(f'{count} hints for "{source}" wait at "{coordinator}": {reason or "they are new"}')
            replayer.replay(force=True)

    def _wait(self, why: str) -> None:
        if time.monotonic() > self._deadline:
            raise ReplicationError(f'server "{self._plan.name}" was not rebuilt in time: {why}')
        time.sleep(_POLL_SECONDS)

    def _copy(self) -> None:
        with ExitStack() as stack:
            sources = {
                name: stack.enter_context(snapshot(self._plan.open(name).connection)) for name in self._plan.sources
            }
            for queue, copies in itertools.groupby(self._plan.copies, lambda copy: copy.queue):
                found = [(copy, sources[copy.source]) for copy in copies]
                values, updates = copy_queue(queue, found, self._plan.name, self._target)
                self._done.values += values
                self._done.updates += updates

    def _inform(self) -> None:
        """Tell the target the other servers, and which of them hold each queue, as far as it doesn't know that."""
        known: dict[str, str] = {}  # from several coordinators, since a coordinator doesn't have its own address
        for _, coordinator in self._plan.others():
            known |= addresses(coordinator)[1]
        named = [name for name in known if name in self._plan.dsns]
        self._target.execute(
            "select pgcombine_internal.handoff_register_missing(%s, %s)", (named, [known[name] for name in named])
        )
        for queue, placement in self._plan.placed.items():
            self._target.execute(query("handoff_place_missing").encode(), (*placement, queue))

    def _end(self) -> tuple[UUID, int]:
        """End the rebuild at the server. Returns the server's new id and its new epoch."""
        slots: dict[str, dict[str, list[int] | None]] = {}
        for copy in self._plan.copies:
            slots.setdefault(copy.queue, {})[copy.source] = copy.slots
        self._done.queues = tuple(slots)
        statement = "select id, epoch, tokens from pgcombine_internal.handoff_rebuild_end(%s, %s)"
        id, epoch, self._done.tokens = one(self._target, statement, Jsonb(slots), self._complete())
        return id, epoch

    def _complete(self) -> list[str]:
        """Return the servers that this server has flagged although they lack nothing.

        The sources know such a server as complete, and it has each of their writes, or a coordinator has a hint.
        """
        flagged = "select name from pgcombine.handoff_replica where needs_repair <> '' and not by_tokens"
        return [
            name
            for (name,) in self._target.execute(flagged).fetchall()
            if name in self._plan.coordinators and not self._lacks(name)
        ]

    def _lacks(self, name: str) -> bool:
        peer = self._plan.coordinators[name].connection
        lacking: set[UUID] = set()
        for source in self._plan.sources:
            if source != name:
                at_source = self._plan.coordinators[source].connection
                if (name,) not in at_source.execute(_COMPLETE).fetchall():
                    return True
                theirs, own = differing(at_source, source, peer, name, surplus=True)
                lacking |= theirs.keys() - own.keys()
        return bool(self._plan.lost(lacking, [name]))

    def _quarantined(self) -> dict[str, list[UUID]]:
        """Return, by coordinator, the copied writes of which the coordinator has updates in quarantine for a source."""
        quarantined = {}
        for coordinator, connection in self._plan.others():
            rows = connection.execute(
                "select distinct token from pgcombine.handoff_quarantine where destination = any(%s)",
                (self._plan.sources,),
            ).fetchall()
            found = self._target.execute(
                "select token from pg_temp.handoff_stage where token = any(%s)", ([token for (token,) in rows],)
            ).fetchall()
            quarantined[coordinator] = [token for (token,) in found]
        return quarantined

    def _notify(self, id: UUID, epoch: int, quarantined: Mapping[str, list[UUID]], marks: Mapping[str, str]) -> None:
        for coordinator, connection in self._plan.others():
            try:
                (repaired,) = one(
                    connection,
                    "select pgcombine_internal.handoff_repair_end(%s, %s, %s, %s, %s, %s, %s)",
                    *(
                        self._plan.name,
                        id,
                        epoch,
                        self._repair,
                        self._plan.sources,
                        quarantined[coordinator],
                        marks.get(coordinator),
                    ),
                )
            except psycopg.Error as error:
                self._done.unreached[coordinator] = str(error).strip()
            else:
                if not repaired:
                    self._done.unrepaired.append(coordinator)


def as_dict(done: Rebuilt) -> dict[str, Any]:
    """Return the result as a dict, for printing."""
    return {**vars(done), "sources": list(done.sources), "queues": list(done.queues)}
