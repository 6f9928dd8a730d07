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
from functools import partial
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


@dataclass(frozen=True)
class _Survey:
    """What one server knows: the lags of the others, those that lack writes without a hint, and the holders of keys.

    ``holders`` is empty if each server holds all keys.
    """

    lags: dict[str, int]
    broken: set[str]
    holders: list[frozenset[str]]


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
    names = list(keys)
    payload = encode_keys(queue, definition, _key_rows(queue, definition, names))
    asked = _worth_asking(servers, replicas - needed(level, replicas))
    avoided = {name: server for name, server in servers.items() if name not in asked}
    failures = dict.fromkeys(avoided, "it failed just now")
    half = (time.monotonic() + deadline) / 2  # the other half of the time is for the values
    survey = partial(_survey, queue, payload, list(servers), replicas)
    surveys = _ask_all(asked, survey, half, failures)
    if len(servers) - len(surveys) > replicas - needed(level, replicas):  # those that failed lately may be back
        for name in avoided:
            del failures[name]
        surveys |= _ask_all(avoided, survey, half, failures)
    if not surveys:
        raise _unavailable(queue, level, failures)
    groups: dict[frozenset[str], list[Any]] = {}  # a key as given may look different from the key that is found
    holders = next(iter(surveys.values())).holders or [frozenset(servers)] * len(names)
    for key, replica_set in zip(names, holders, strict=True):
        groups.setdefault(replica_set, []).append(key)
    answers = _ask_all({name: servers[name] for name in surveys}, partial(_values, queue, groups), deadline, failures)
    lags = {name: sum(survey.lags.get(name, 0) for survey in surveys.values()) for name in answers}
    broken = set[str]().union(*(survey.broken for survey in surveys.values())) & servers.keys()
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


def _key_rows(queue: str, definition: Definition, keys: Iterable[Any]) -> list[Any]:
    """Return the keys as rows of the key columns. Raises InvalidUpdate for a key with too few or too many columns."""
    rows = [key if definition.keys > 1 else (key,) for key in keys]
    for row in rows:
        if len(row) != definition.keys:
            columns = ", ".join(definition.columns[: definition.keys])
            raise InvalidUpdate(f'key {row!r} doesn\'t fit queue "{queue}": its key is ({columns})', queue=queue)
    return rows


def _worth_asking(servers: Mapping[str, Server], spare: int) -> Mapping[str, Server]:
    """Return the servers without those that failed lately, or all if more than ``spare`` have failed."""
    well = {name: server for name, server in servers.items() if not server.avoided}
    return servers if len(servers) - len(well) > spare else well


def _survey(queue: str, keys: str, servers: list[str], replicas: int, peer: Peer) -> _Survey:
    ask = peer.connection.execute
    lags = ask("select destination, writes from pgcombine_internal.handoff_lags(%s)", (queue,)).fetchall()
    broken = ask("select name from pgcombine.handoff_replica where needs_repair is not null").fetchall()
    holders: list[tuple[list[str]]] = []
    if replicas < len(servers) and keys != "{}":
        holders = ask(
            "select holders from pgcombine_internal.handoff_holders(%s, %s, %s, %s)", (queue, keys, servers, replicas)
        ).fetchall()
    return _Survey(dict(lags), {name for (name,) in broken}, [frozenset(names) for (names,) in holders])


def _values(queue: str, groups: Mapping[frozenset[str], list[Any]], peer: Peer) -> dict[frozenset[str], dict[Any, Any]]:
    with peer.connection.transaction():
        peer.connection.execute("select pgcombine_internal.portable_text()")
        return {
            replica_set: CombineQueue(queue).get(peer.connection, keys)
            for replica_set, keys in groups.items()
            if peer.name in replica_set
        }


def _ask_all(
    servers: Mapping[str, Server], ask: Callable[[Peer], T], deadline: float, failures: dict[str, str]
) -> dict[str, T]:
    """Return the answers that came in time, and add the reasons why the others didn't to ``failures``."""

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
        answers = {}
        for name, future in futures.items():
            if not future.done():
                failures[name] = "no answer in time"
            elif (error := future.exception()) is None:
                answers[name] = future.result()
            elif isinstance(error, InvalidUpdate) or not isinstance(error, (psycopg.Error, PgCombineError)):
                raise error
            else:
                failures[name] = str(error)
        return answers
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _unavailable(queue: str, level: Level, failures: Mapping[str, str]) -> Unavailable:
    reasons = "; ".join(f"{name}: {reason}" for name, reason in failures.items())
    return Unavailable(f'too few servers answered for level {level} of queue "{queue}": {reasons}', queue=queue)
