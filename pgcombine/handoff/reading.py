"""Reading at a level: values from several servers, and the number of writes that each of them lacks.

The hints at all servers are counted *before* values are read. So a write that was acknowledged before is in a server's
values, or in its ``lags``. If a home doesn't answer, its hints can't be counted, and ``unknown`` names it. Too few
answers raise Unavailable.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg

from pgcombine.errors import InvalidUpdate, PgCombineError, Unavailable
from pgcombine.handoff.connections import Peer
from pgcombine.handoff.encoding import Definition, encode_keys
from pgcombine.handoff.levels import Level, needed
from pgcombine.handoff.servers import NotConnected, Server
from pgcombine.queue.combine_queue import CombineQueue

T = TypeVar("T")


@dataclass(frozen=True)
class Reading:
    """Values by key, each from the least lagging of the servers that answered.

    ``lags`` has the number of writes that each of these servers lacks, at most. ``unknown`` are the servers that didn't
    answer, whose hints couldn't be counted. ``needs_repair`` are servers that lack writes without a hint. ``complete``
    means that the values have every write that was acknowledged before.
    """

    values: dict[Any, Any]
    lags: dict[str, int]
    unknown: tuple[str, ...]
    complete: bool
    needs_repair: tuple[str, ...] = ()


def read(
    servers: Mapping[str, Server],
    queue: str,
    definition: Definition,
    keys: Iterable[Any],
    replicas: int,
    level: Level,
    deadline: float,
) -> Reading:
    """Ask the servers in parallel. Raises Unavailable if too few answer for some key, InvalidUpdate for a bad key."""
    wanted = [key if definition.keys > 1 else (key,) for key in keys]
    for key in wanted:
        if len(key) != definition.keys:
            columns = ", ".join(definition.columns[: definition.keys])
            raise InvalidUpdate(f'key {key!r} doesn\'t fit queue "{queue}": its key is ({columns})', queue=queue)
    names = [key if definition.keys > 1 else key[0] for key in wanted]
    encoded = encode_keys(queue, definition, wanted) if wanted else "{}"

    def survey(peer: Peer) -> tuple[dict[str, int], list[frozenset[str]], set[str]]:
        lags = peer.connection.execute(
            "select destination, writes from pgcombine_internal.handoff_lags(%s)", (queue,)
        ).fetchall()
        marked = peer.connection.execute(
            "select name from pgcombine.handoff_replica where needs_repair is not null"
        ).fetchall()
        broken = {name for (name,) in marked}
        if replicas >= len(servers) or not wanted:
            return dict(lags), [frozenset(servers)] * len(wanted), broken
        holders = peer.connection.execute(
            "select holders from pgcombine_internal.handoff_holders(%s, %s, %s, %s)",
            (queue, encoded, list(servers), replicas),
        ).fetchall()
        return dict(lags), [frozenset(row[0]) for row in holders], broken

    # Servers that failed lately are spared if the others are enough. Half of the time is for the values.
    well = {name: server for name, server in servers.items() if not server.avoided}
    if len(servers) - len(well) > replicas - needed(level, replicas):
        well = dict(servers)
    failures = dict.fromkeys(servers.keys() - well.keys(), "it failed just now")
    surveys, more = _ask_all(well, survey, (time.monotonic() + deadline) / 2)
    failures.update(more)
    if not surveys:
        raise _unavailable(queue, level, failures)
    groups: dict[frozenset[str], list[Any]] = {}  # a key as given may look different from the key that is found
    for key, replica_set in zip(names, next(iter(surveys.values()))[1], strict=True):
        groups.setdefault(replica_set, []).append(key)

    def look(peer: Peer) -> dict[frozenset[str], dict[Any, Any]]:
        with peer.connection.transaction():
            peer.connection.execute("select pgcombine_internal.portable_text()")
            return {
                replica_set: CombineQueue(queue).get(peer.connection, group)
                for replica_set, group in groups.items()
                if peer.name in replica_set
            }

    answers, more = _ask_all({name: servers[name] for name in surveys}, look, deadline)
    failures.update(more)
    lags = {name: sum(found.get(name, 0) for found, _, _ in surveys.values()) for name in answers}
    broken = set[str]().union(*(marked for _, _, marked in surveys.values())) & servers.keys()
    values: dict[Any, Any] = {}
    complete = not failures
    for replica_set in groups:
        answered = sorted(replica_set & answers.keys(), key=lambda name: (name in broken, lags[name], name))
        if len(answered) < needed(level, len(replica_set)):
            raise _unavailable(queue, level, failures)
        complete = complete and lags[answered[0]] == 0 and answered[0] not in broken
        values.update(answers[answered[0]][replica_set])
    unknown = tuple(name for name in servers if name not in surveys)
    return Reading(values, lags, unknown, complete, tuple(name for name in servers if name in broken))


def _ask_all(
    servers: Mapping[str, Server], ask: Callable[[Peer], T], deadline: float
) -> tuple[dict[str, T], dict[str, str]]:
    """Return the answers that came in time, and the reasons why the others didn't."""

    def one(server: Server) -> T:
        while True:
            try:
                with server.peer(max(0.001, deadline - time.monotonic())) as peer:
                    answer = ask(peer)
            except psycopg.OperationalError as error:
                # no answer: the server may have been restarted since the connection was opened
                if isinstance(error, NotConnected) or time.monotonic() >= deadline:
                    server.failed()
                    raise
            else:
                server.answered()
                return answer

    pool = ThreadPoolExecutor(max_workers=max(1, len(servers)), thread_name_prefix="pgcombine-read")
    try:
        futures = {name: pool.submit(one, server) for name, server in servers.items()}
        wait_for(futures.values(), timeout=max(0.0, deadline - time.monotonic()) + 0.2)
        answers, failures = {}, {}
        for name, future in futures.items():
            if not future.done():
                failures[name] = "no answer in time"
            elif (error := future.exception()) is None:
                answers[name] = future.result()
            elif isinstance(error, InvalidUpdate) or not isinstance(error, (psycopg.Error, PgCombineError)):
                raise error
            else:
                failures[name] = str(error)
        return answers, failures
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _unavailable(queue: str, level: Level, failures: Mapping[str, str]) -> Unavailable:
    reasons = "; ".join(f"{name}: {reason}" for name, reason in failures.items())
    return Unavailable(f'too few servers answered for level {level} of queue "{queue}": {reasons}', queue=queue)
