"""The figures of a feed: what it costs passes, beside an export and neither.

Three queues get the same updates in turn, and one session runs their passes. A wrong total raises PgCombineError.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from pgcombine.bench.scratch import Scratch
from pgcombine.bench.settings import Result, Settings, result
from pgcombine.errors import PgCombineError

_UPDATES = 100  # of a pass, each of another key
_TURN = 20  # passes over a queue before it is the next one's turn
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
    """Measure the passes of a queue with a feed, and of one with an export, and their write-ahead log.

    The baseline is a queue with neither. A pass takes 100 updates, each of another key.
    """
    rates: dict[str, list[float]] = {queue: [] for queue in _MAKE}
    logs: dict[str, list[float]] = {queue: [] for queue in _MAKE}
    for queue, make in _MAKE.items():
        scratch.connection.execute(_CREATE, (queue,))
        scratch.connection.execute(make.encode())
    expected = sum(_turn(scratch, queue)[0] * _UPDATES for queue in _MAKE)  # warms up
    for _ in range(settings.rounds):
        seconds, log, passes = dict.fromkeys(_MAKE, 0.0), dict.fromkeys(_MAKE, 0), 0
        ends = time.monotonic() + settings.seconds
        while time.monotonic() < ends:
            for queue in _MAKE:
                done, took, written = _turn(scratch, queue)
                seconds[queue] += took
                log[queue] += written
            passes += done
        for queue in _MAKE:
            rates[queue].append(passes / seconds[queue])
            logs[queue].append(log[queue] / (passes * _UPDATES))
        expected += len(_MAKE) * passes * _UPDATES
    found = sum(scratch.one(f"select sum(n) from pgcombine.{queue}_values") for queue in _MAKE)  # noqa: S608
    if found != expected:
        raise PgCombineError(f"the benchmark enqueued {expected:,} updates, but the values hold {found:,}")
    for queue, name in (("fed", "a feed"), ("exported", "an export")):
        yield result(f"passes with {name}", "passes/s", rates[queue], "with neither", rates["plain"])
        yield result(f"passes with {name}: log", "bytes/change", logs[queue], "with neither", logs["plain"])


def _turn(scratch: Scratch, queue: str) -> tuple[int, float, int]:
    """Run passes over a queue. Returns their number, seconds, and bytes of log."""
    seconds, log = 0.0, 0
    for _ in range(_TURN):
        scratch.one(_ENQUEUE, queue, _UPDATES)
        began, started = scratch.wal_position(), time.perf_counter()
        scratch.one("select updates from pgcombine.combine(%s, 0)", queue)
        seconds += time.perf_counter() - started
        log += scratch.wal_position() - began
    return _TURN, seconds, log
