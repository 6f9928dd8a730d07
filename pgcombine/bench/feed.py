"""The figures of a feed: the cost of passes with a feed, with an export, and with neither.

Three queues get the same updates in turn, and one session runs their passes. A wrong total raises PgCombineError.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from pgcombine.bench.processor import ServerTime
from pgcombine.bench.scratch import Scratch
from pgcombine.bench.settings import Result, Settings, result
from pgcombine.errors import PgCombineError

_UPDATES = 100  # updates that a pass takes, each with a different key
_TURN = 20  # passes over a queue before the next queue's turn
_MAKE = {
    "plain": "select",
    "exported": "select pgcombine.create_export('exported', 'exported')",
    "fed": "select pgcombine.create_feed('fed', 'fed')",
}
_CREATE = "select pgcombine.create_queue(%s, key => array['word text'], value => array['n bigint sum'], buckets => 1)"
_ENQUEUE = """
    select pgcombine.enqueue(%s, jsonb_agg(jsonb_build_object('word', 'w' || i, 'n', 1))) from generate_series(1, %s) i
"""


def feed(scratch: Scratch, settings: Settings) -> Iterator[Result]:
    """Measure the passes of a queue with a feed, and of one with an export: rate, processor time, and write-ahead log.

    The baseline is a queue with neither. A pass takes 100 updates, each with a different key. The processor time is
    left out if the server's processes can't be read.
    """
    rates: dict[str, list[float]] = {queue: [] for queue in _MAKE}
    logs: dict[str, list[float]] = {queue: [] for queue in _MAKE}
    times: dict[str, list[float]] = {queue: [] for queue in _MAKE}
    # The file counts nanoseconds. Other sources count ticks, which are longer than a pass.
    used = Path(f"/proc/{scratch.connection.info.backend_pid}/schedstat")
    readable = ServerTime(scratch.connection).readable and used.exists()
    for queue, make in _MAKE.items():
        scratch.connection.execute(_CREATE, (queue,))
        scratch.connection.execute(make.encode())
    expected = sum(_turn(scratch, queue, None)[0] * _UPDATES for queue in _MAKE)  # warms up
    for _ in range(settings.rounds):
        seconds, busy = dict.fromkeys(_MAKE, 0.0), dict.fromkeys(_MAKE, 0.0)
        log, passes = dict.fromkeys(_MAKE, 0), 0
        ends = time.monotonic() + settings.seconds
        while time.monotonic() < ends:
            for queue in _MAKE:
                done, took, processor, written = _turn(scratch, queue, used if readable else None)
                seconds[queue] += took
                busy[queue] += processor
                log[queue] += written
            passes += done
        for queue in _MAKE:
            rates[queue].append(passes / seconds[queue])
            logs[queue].append(log[queue] / (passes * _UPDATES))
            times[queue].append(busy[queue] * 1000 / passes)
        expected += len(_MAKE) * passes * _UPDATES
    found = sum(scratch.one(f"select sum(n) from pgcombine.{queue}_values") for queue in _MAKE)  # noqa: S608
    if found != expected:
        raise PgCombineError(f"the benchmark enqueued {expected:,} updates, but the values hold {found:,}")
    for queue, name in (("fed", "a feed"), ("exported", "an export")):
        yield result(f"passes with {name}", "passes/s", rates[queue], "with neither", rates["plain"])
        if readable:
            yield result(f"passes with {name}: processor", "ms/pass", times[queue], "with neither", times["plain"])
        yield result(f"passes with {name}: log", "bytes/change", logs[queue], "with neither", logs["plain"])


def _turn(scratch: Scratch, queue: str, used: Path | None) -> tuple[int, float, float, int]:
    """Run passes over a queue. Returns their number, seconds, processor seconds of the session, and bytes of WAL."""
    seconds, busy, log = 0.0, 0.0, 0
    for _ in range(_TURN):
        scratch.one(_ENQUEUE, queue, _UPDATES)
        began, before, started = scratch.wal_position(), _seconds(used), time.perf_counter()
        scratch.one("select updates from pgcombine.combine(%s, 0)", queue)
        seconds += time.perf_counter() - started
        busy += _seconds(used) - before
        log += scratch.wal_position() - began
    return _TURN, seconds, busy, log


def _seconds(used: Path | None) -> float:
    return 0.0 if used is None else int(used.read_text().split()[0]) / 1e9
