"""Reading at a level: values from several servers, and the number of writes that each of them lacks.

The hints at the servers are counted before values are read. So a write that is delivered in between isn't overlooked:
it counts as a write that the server lacks.

If a coordinator doesn't answer, ``Reading.unknown`` names it. The writes of this coordinator that other servers retain
are counted instead of its hints.

If a server lacks a write that another server knows it had, the server has lost commits, for example by a restore from
an older backup. Such a server counts as in need of repair. So does a server with another generation of the queue than
most servers have. If two generations are on equally many servers, the servers with the earlier one need repair.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

import psycopg

from pgcombine.database.connect import one
from pgcombine.errors import InvalidUpdateError, PgCombineError, UnavailableError, WrongServerError
from pgcombine.handoff.connections import Peer, identity
from pgcombine.handoff.encoding import Definition, encode_keys
from pgcombine.handoff.levels import Level, needed
from pgcombine.handoff.servers import NotConnected, Server
from pgcombine.queue.combine_queue import CombineQueue

T = TypeVar("T")
# The largest number of retained writes that a server returns for coordinators that don't answer. If a server returns so
# many, some may be missing, and ``Reading.complete`` is False.
_RETAINED_WRITES = 10_000


@dataclass(frozen=True)
class Reading:
    """Values by key.

    Each value is from a server that holds the key and answered: the one that lags least of those that don't need
    repair, or of all if all need repair.

    ``lags`` has, for each server that answered, the number of writes that it lacks, as a whole or in part. Only writes
    that could be counted are included, and the number may be too high. ``unknown`` are servers of the queue whose hints
    couldn't be counted: they didn't answer, or this caller doesn't name them. ``needs_repair`` are servers that may
    lack writes for which there is no hint. ``complete`` means that the values contain every write that was acknowledged
    before the call.
    """

    values: dict[Any, Any]
    lags: dict[str, int]
    unknown: tuple[str, ...]
    complete: bool
    needs_repair: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Status:
    """One server's answers from ``handoff_status`` and ``handoff_holders`` (no holders: each server holds all keys)."""

    id: UUID
    ids: dict[str, str]
    lags: dict[str, int]
    refused: dict[str, int]
    seen: dict[str, list[str]]
    broken: set[str]
    named: set[str]
    coordinators: set[UUID]
    known: list[str] | None
    generation: int
    holders: list[frozenset[str]]


@dataclass(frozen=True)
class _Values:
    """The values of one server, grouped by the set of servers that hold the keys.

    ``forgotten`` is the number of writes that the server lacks although another server knows that it had them. Only the
    last writes that each other server knows of are checked.
    """

    by_set: dict[frozenset[str], dict[Any, Any]]
    forgotten: int


def read(
    servers: Mapping[str, Server],
    queue: str,
    definition: Definition,
    keys: Iterable[Any],
    replicas: int,
    level: Level,
    deadline: float,
) -> Reading:
    """Read values from the servers, in parallel. ``deadline`` is a time of ``time.monotonic``.

    Raises UnavailableError if too few of a key's servers answer, and InvalidUpdateError for a key that doesn't fit.
    """
    names = list(keys)
    payload = encode_keys(queue, definition, _key_rows(queue, definition, names))
    asked = _worth_asking(servers, replicas - needed(level, replicas))
    avoided = {name: server for name, server in servers.items() if name not in asked}
    failures = dict.fromkeys(avoided, "it failed just now")
    now = time.monotonic()
    half = (now + deadline) / 2  # the statuses get half of the time, the lags and the values the rest
    status = partial(_status, queue, payload, list(servers), replicas)
    statuses = _ask_all(asked, status, (now + half) / 2 if avoided else half, failures)
    # If the level can't be reached without the avoided servers, ask them, too.
    if len(servers) - len(statuses) > replicas - needed(level, replicas):
        for name in avoided:
            del failures[name]
        statuses |= _ask_all(avoided, status, half, failures)
    if not statuses:
        raise _unavailable(queue, level, failures)
    groups: dict[frozenset[str], list[Any]] = {}  # keys in the caller's form; a server may return another form
    holders = next(iter(statuses.values())).holders or [frozenset(servers)] * len(names)
    for key, replica_set in zip(names, holders, strict=True):
        groups.setdefault(replica_set, []).append(key)
    lags, counted = _lags(servers, queue, statuses, (half + deadline) / 2, failures)
    answers = _ask_all(
        {name: servers[name] for name in statuses}, partial(_values, queue, groups, statuses), deadline, failures
    )
    forgetful = {name for name, answer in answers.items() if answer.forgotten}
    if forgetful:  # These servers may have lost hints, too. So count again, as if they hadn't answered.
        lags, _ = _lags(servers, queue, statuses, deadline, failures, forgetful)
    lags = {name: lags[name] + answer.forgotten for name, answer in answers.items()}
    broken = forgetful.union(*(status.broken for status in statuses.values())) & servers.keys()
    # If a server knows another one by a different id, it may have delivered to a former server of that name.
    for found in statuses.values():
        broken |= {name for name, other in statuses.items() if found.ids.get(name, str(other.id)) != str(other.id)}
        if found.known is not None:  # a server unknown to another one was removed there or is new: it may lack writes
            broken |= statuses.keys() - set(found.known)
    generations = Counter(status.generation for status in statuses.values())
    generation = max(generations, key=lambda number: (generations[number], number))
    broken |= {name for name, status in statuses.items() if status.generation != generation}
    named = set[str]().union(*(status.named for status in statuses.values())) | servers.keys()
    values: dict[Any, Any] = {}
    complete = counted and not failures and not forgetful and len(generations) == 1 and named == statuses.keys()
    for replica_set in groups:
        answered = sorted(replica_set & answers.keys(), key=lambda name: (name in broken, lags[name], name))
        if len(answered) < needed(level, len(replica_set)):
            raise _unavailable(queue, level, failures)
        complete = complete and lags[answered[0]] == 0 and answered[0] not in broken
        values.update(answers[answered[0]].by_set[replica_set])
    unknown = tuple(sorted(named - statuses.keys()))
    return Reading(values, lags, unknown, complete, tuple(name for name in servers if name in broken))


def _lags(
    servers: Mapping[str, Server],
    queue: str,
    statuses: Mapping[str, _Status],
    deadline: float,
    failures: dict[str, str],
    forgetful: Collection[str] = (),
) -> tuple[dict[str, int], bool]:
    """Return the largest number of writes that each server may lack, and whether all writes could be counted.

    The hints of a coordinator that answered are counted. A coordinator that didn't answer may have hints, and one in
    ``forgetful`` may have lost hints. Other servers may retain writes of such a coordinator. They are asked for the
    tokens of these writes. Then the servers are asked which of the tokens they have.
    """
    lags = {name: sum(found.lags.get(name, 0) for found in statuses.values()) for name in statuses}
    for name, own in statuses.items():  # coordinators and the server itself may count the same refused writes
        coordinators = sum(found.refused.get(name, 0) for other, found in statuses.items() if other != name)
        lags[name] += max(coordinators, own.refused.get(name, 0))
    counted = {status.id for name, status in statuses.items() if name not in forgetful}
    silent = {coordinator for status in statuses.values() for coordinator in status.coordinators} - counted
    if not silent:
        return lags, True
    retaining = {name: servers[name] for name, status in statuses.items() if status.coordinators & silent}
    retained = _ask_all(retaining, partial(_retained, queue, silent), deadline, failures)
    holders = {token: names for tokens in retained.values() for token, names in tokens}
    known = _ask_all({name: servers[name] for name in statuses}, partial(_known, queue, holders), deadline, failures)
    for name, tokens in known.items():
        lags[name] += sum(names is None or name in names for token, names in holders.items() if token not in tokens)
    full = any(len(tokens) == _RETAINED_WRITES for tokens in retained.values())
    return lags, known.keys() == statuses.keys() and retained.keys() == retaining.keys() and not full


def _key_rows(queue: str, definition: Definition, keys: Iterable[Any]) -> list[Any]:
    """Return the keys as rows. Raises InvalidUpdateError for a key that doesn't have a part for each key column."""
    rows = [key if definition.keys > 1 else (key,) for key in keys]
    for row in rows:
        if isinstance(row, (str, bytes)) or not isinstance(row, Sequence) or len(row) != definition.keys:
            columns = ", ".join(definition.columns[: definition.keys])
            raise InvalidUpdateError(f'key {row!r} doesn\'t fit queue "{queue}": its key is ({columns})', queue=queue)
    return rows


def _worth_asking(servers: Mapping[str, Server], spare: int) -> Mapping[str, Server]:
    """Return the servers that haven't failed recently, or all if more than ``spare`` servers have failed recently."""
    well = {name: server for name, server in servers.items() if not server.avoided}
    return servers if len(servers) - len(well) > spare else well


def _status(queue: str, keys: str, servers: list[str], replicas: int, peer: Peer) -> _Status:
    ask = peer.connection.execute
    id, ids, lags, refused, seen, broken, named, coordinators, known, generation = one(
        peer.connection,
        "select id, ids, lags, refused, seen, broken, named, coordinators, known, generation "
        # names instead of *, since a server of a later version may return more columns
        "from pgcombine_internal.handoff_status(%s)",
        queue,
    )
    holders: list[tuple[list[str]]] = []
    if replicas < len(servers) and keys != "{}":
        holders = ask(
            "select holders from pgcombine_internal.handoff_holders(%s, %s, %s, %s)", (queue, keys, servers, replicas)
        ).fetchall()
    sets = [frozenset(names) for (names,) in holders]
    return _Status(id, ids, lags, refused, seen, set(broken), set(named), set(coordinators), known, generation, sets)


def _retained(queue: str, coordinators: set[UUID], peer: Peer) -> list[tuple[UUID, list[str] | None]]:
    return peer.connection.execute(
        "select token, servers from pgcombine_internal.handoff_retained_of(%s, %s, %s)",
        (queue, list(coordinators), _RETAINED_WRITES),
    ).fetchall()


def _known(queue: str, tokens: Iterable[UUID], peer: Peer) -> set[UUID]:
    rows = peer.connection.execute("select pgcombine_internal.handoff_known(%s, %s)", (queue, list(tokens))).fetchall()
    return {token for (token,) in rows}


def _values(
    queue: str, groups: Mapping[frozenset[str], list[Any]], statuses: Mapping[str, _Status], peer: Peer
) -> _Values:
    own = statuses[peer.name]
    alike = [status for status in statuses.values() if status.generation == own.generation]
    names = (peer.name, str(own.id))
    seen = {UUID(token) for status in alike for name in names for token in status.seen.get(name, ())}
    with peer.connection.transaction():
        peer.connection.execute("select pgcombine_internal.portable_text()")
        values = {
            replica_set: CombineQueue(queue).get(peer.connection, keys)
            for replica_set, keys in groups.items()
            if peer.name in replica_set
        }
        if identity(peer.connection) != own.id:
            raise WrongServerError(f'server "{peer.name}" was replaced while it was read: read again')
        forgotten = seen - _known(queue, seen, peer)
    return _Values(values, len(forgotten))


def _ask_all(
    servers: Mapping[str, Server], ask: Callable[[Peer], T], deadline: float, failures: dict[str, str]
) -> dict[str, T]:
    """Return the answers that came in time, by server. ``failures`` gets the reasons why others didn't answer."""

    def answer_of(server: Server) -> T:
        while True:
            try:
                with server.peer(max(0.001, deadline - time.monotonic())) as peer:
                    answer = ask(peer)
            except psycopg.OperationalError as error:
                # The server may have restarted since the connection was opened. Try again until the deadline.
                if isinstance(error, NotConnected) or time.monotonic() >= deadline:
                    server.failed()
                    raise
            else:
                server.answered()
                return answer

    pool = ThreadPoolExecutor(max_workers=max(1, len(servers)), thread_name_prefix="pgcombine-read")
    try:
        futures = {name: pool.submit(answer_of, server) for name, server in servers.items()}
        wait_for(futures.values(), timeout=max(0.0, deadline - time.monotonic()) + 0.2)
        answers = {}
        for name, future in futures.items():
            if not future.done():
                failures[name] = "no answer in time"
            elif (error := future.exception()) is None:
                answers[name] = future.result()
            elif isinstance(error, InvalidUpdateError) or not isinstance(error, (psycopg.Error, PgCombineError)):
                raise error
            else:
                failures[name] = str(error)
        return answers
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _unavailable(queue: str, level: Level, failures: Mapping[str, str]) -> UnavailableError:
    reasons = "; ".join(f"{name}: {reason}" for name, reason in failures.items())
    return UnavailableError(f'too few servers answered for level {level} of queue "{queue}": {reasons}', queue=queue)
