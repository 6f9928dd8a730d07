"""Figures of a single session: a writer's statements, passes, and a writer's write-ahead log.

``statement``, ``passes`` and ``session_log`` each return the values of a figure.
"""

from __future__ import annotations

import statistics
import time
from contextlib import closing
from pathlib import Path

from pgcombine.bench.scratch import QUEUE, SAMPLE, UPDATES
from pgcombine.database.connect import Connection, connect, one
from pgcombine.errors import PgCombineError

from ..peers.load import APART, STRIDE, Work
from ..peers.turn import Turn
from .version import log_size

SLICES = 4
PASSES = {1: 60, 100: 30, 1_000: 10, 10_000: 5}  # updates in a pass → the number of such passes
KEYS, COMBINED = 120_000, 200_000  # keys in the table of values; combined rows in the log for ``pass-beside``
EMPTY = 1.0  # MB of all tables of the log; a smaller log counts as empty
_COPY = f"copy {UPDATES} (word, n) from stdin".encode()
_INSERT = f"insert into {UPDATES} (word, n) select unnest(%s::text[]), 1".encode()
# The procedure writes the same words as client 0 of a load.
_LOOP = f"""
create procedure bench.write_{{name}}(seconds double precision, updates integer, inout j bigint)
language plpgsql
as $$
declare
    _i integer;
    _end constant timestamptz := clock_timestamp() + make_interval(secs => seconds);
begin
    while clock_timestamp() < _end loop
        j := j + 1;
        _i := (j * {STRIDE} + 0 * {APART}) % ({SAMPLE} - updates);
        insert into {{table}} (word, n) select z.word, 1 from bench.zipf z where z.i >= _i and z.i < _i + updates;
        commit;
    end loop;
end
$$"""  # noqa: S608


def statement(turn: Turn, updates: int, seconds: float) -> dict[str, float]:
    """Measure the time of a writer's statement minus that of the same insert into a bare table, in µs.

    ``processor`` is the same difference of processor times. ``whole`` and ``of_bare`` are the times of
    transactions with one of the two statements.
    """
    found: dict[str, list[tuple[float, float]]] = {"bare": [], "queue": []}
    done = dict.fromkeys(found, 0)
    with closing(connect(turn.dsn, name="versions writer")) as writer:

        def write(name: str, seconds: float) -> tuple[float, float]:
            before, used = done[name], processor_seconds(writer)
            (done[name],) = one(writer, f"call bench.write_{name}(%s, %s, %s)", seconds, updates, before)
            count = done[name] - before
            return 1e6 * seconds / count, 1e6 * (processor_seconds(writer) - used) / count

        writer.execute("set synchronous_commit = off")
        writer.execute("set plan_cache_mode = force_generic_plan")
        for name, table in (("bare", "bench.bare"), ("queue", UPDATES)):
            writer.execute(_LOOP.format(name=name, table=table).encode())
            write(name, 0.05)  # fill plans and caches
        for _ in range(SLICES):
            for name in found:
                writer.execute("truncate bench.bare")
                found[name].append(write(name, seconds / SLICES / 2))
    turn.ledger.enter(Work(updates), ((0, j) for j in range(1, done["queue"] + 1)))
    (bare, bare_used), (queue, queue_used) = (map(min, zip(*found[name], strict=True)) for name in ("bare", "queue"))
    return {"above": queue - bare, "processor": queue_used - bare_used, "whole": queue, "of_bare": bare}


def passes(turn: Turn, combined: int) -> dict[str, float]:
    """Measure passes while the log has ``combined`` combined rows.

    Times and processor times are in ms a pass. ``key`` is in µs a key, for passes of 10,000 updates. ``of_log`` is
    the size of the log before these passes, in MB.
    """
    session = turn.connection
    keys = [f"key{number:06d}" for number in range(KEYS)]
    _write(turn, session, keys)
    with turn.consumer():
        turn.settle()
        _empty(turn)
    for table in turn.contender.tables:
        session.execute(f"vacuum (analyze) {table}".encode())
    if combined:
        _write(turn, session, [keys[number % KEYS] for number in range(combined)])
        _combine(session, combined)
    found = {"of_log": log_size(session)}
    for updates, times in PASSES.items():
        seconds, taken, used = [], 0, 0.0
        for number in range(-1, times):  # the first pass isn't counted
            _write(turn, session, [keys[(number * 7919 + place * 104_729) % KEYS] for place in range(updates)])
            before, began = processor_seconds(session), time.perf_counter()
            count = _combine(session, updates)
            if number >= 0:
                seconds.append(time.perf_counter() - began)
                used += processor_seconds(session) - before
                taken += count
        found[f"ms_{updates}"] = 1e3 * statistics.median(seconds)
        found[f"processor_{updates}"] = 1e3 * used / times
    return found | {"key": 1e6 * statistics.median(seconds) / (taken / times)}


def session_log(turn: Turn) -> dict[str, float]:
    """Measure the write-ahead log that a session writes, in bytes an update, with 100 updates in each transaction."""
    updates, transactions = 100, 200
    found = {}
    with closing(connect(turn.dsn, name="versions writer")) as writer:
        if writer.info.server_version < 180000:
            raise PgCombineError("PostgreSQL before 18 doesn't count a session's write-ahead log: use another server")
        for name in ("copy", "insert"):
            before = _own_log(writer)
            for number in range(transactions):
                words = turn.ledger.words[number * updates : (number + 1) * updates]
                _write(turn, writer, words, by_copy=name == "copy")
            found[name] = (_own_log(writer) - before) / (updates * transactions)
    return found


def _write(turn: Turn, session: Connection, words: list[str], *, by_copy: bool = True) -> None:
    if by_copy:
        with session.cursor().copy(_COPY) as copy:
            copy.write("".join(f"{word}\t1\n" for word in words))
    else:
        session.execute(_INSERT, (words,))
    for word in words:
        turn.ledger.enter_one(word)


def _combine(session: Connection, updates: int) -> int:
    """Run one pass, and return its number of keys. Raises PgCombineError if it doesn't take ``updates`` updates."""
    row = session.execute("select updates, keys from pgcombine.combine(%s, 0)", (QUEUE,)).fetchone()
    if row is None or row[0] != updates:
        raise PgCombineError(f"a pass took {row and row[0]} of {updates} updates")
    return int(row[1])


def _empty(turn: Turn) -> None:
    """Wait until the worker has reclaimed the log. Gives up after 80 looks, 0.1 s apart.

    Version 2da02cb reclaims a segment when new transaction ids belong to another segment, so this function uses up
    ids. Deleted rows also need a vacuum.
    """
    session = turn.connection
    for number in range(80):
        if number % 10 == 0:
            session.execute("set synchronous_commit = off")
            session.execute("do $$ begin for i in 1 .. 5000 loop perform txid_current(); commit; end loop; end $$")
            session.execute("reset synchronous_commit")
            _write(turn, session, ["key000000"])  # makes the worker run a pass after the new ids
            turn.settle()
            session.execute(f"vacuum {UPDATES}".encode())
        if log_size(session) < EMPTY:
            return
        time.sleep(0.1)


def _own_log(session: Connection) -> int:
    session.execute("select pg_stat_force_next_flush()")
    return int(one(session, "select wal_bytes from pg_stat_get_backend_wal(pg_backend_pid())")[0])


def processor_seconds(session: Connection) -> float:
    """Return the processor seconds of a session's process, or 0 if they can't be read in ``/proc``."""
    try:
        return int(Path(f"/proc/{session.info.backend_pid}/schedstat").read_text().split()[0]) / 1e9
    except OSError:
        return 0.0
