"""The figure of a held snapshot: the cost of writes while PostgreSQL can't remove dead rows.

A snapshot is held in each contender's database. While it is held, the contenders have measured windows in turn, and
all are offered the same rate of transactions. The first windows don't count, since there are still few dead rows. One
window before the snapshot is measured for comparison.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing

from pgcombine.database.connect import connect

from .contender import Contender
from .load import Work
from .measurement import Measurement, kept, rotated
from .measures import CLIENTS, SNAPSHOT, Lengths
from .probes import beside, percentiles
from .processor import ServerTime
from .turn import Base, Turn, database

_WORK = Work(20)
_OFFERED = 1500.0  # transactions a second


def held_snapshot(base: Base, contenders: Sequence[Contender], lengths: Lengths) -> Iterator[Measurement]:
    """Measure the figure. Yields the measurements that count and those with an error.

    A contender has no further window after an error.
    """
    with ExitStack() as stack:
        turns: dict[Contender, Turn] = {}
        before: dict[Contender, dict[str, float]] = {}
        for contender in contenders:
            found = Measurement(SNAPSHOT, contender.name, 0)
            with kept(found):
                turn = stack.enter_context(database(base, contender))
                with turn.consumer():
                    turn.warm()
                values = _window(turn, lengths.window)
                before[contender] = {"before": values["rate"]}
                before[contender] |= {f"{name}_before": values[name] for name in ("p50", "server") if name in values}
                holder = stack.enter_context(closing(connect(turn.dsn, name="peers holder")))
                holder.execute("begin isolation level repeatable read")
                holder.execute("select count(*) from bench.zipf")
                turns[contender] = turn
            if found.error:
                yield found
        sizes = {contender: contender.size(turn.connection) for contender, turn in turns.items()}
        updates = dict.fromkeys(turns, 0.0)
        since = time.monotonic()
        for number in range(-lengths.aging, lengths.rounds_of(SNAPSHOT)):
            for contender in rotated([*turns], number):
                turn = turns[contender]
                found = Measurement(SNAPSHOT, contender.name, max(number, 0))
                with kept(found):
                    found.values = _window(turn, lengths.window if number >= 0 else lengths.aging_window)
                    updates[contender] += found.values.pop("updates")
                    found.values["growth"] = (contender.size(turn.connection) - sizes[contender]) / updates[contender]
                    found.values["held"] = time.monotonic() - since
                    found.values |= before[contender]
                    turn.judge(found)
                if found.error:
                    del turns[contender]
                if number >= 0 or found.error:
                    yield found


def _window(turn: Turn, seconds: float) -> dict[str, float]:
    turn.next_window()
    turn.connection.execute("checkpoint")
    with turn.consumer(), ServerTime(turn.connection) as server:
        delays, done = beside(turn, lambda: turn.load(_WORK, clients=CLIENTS, seconds=seconds, rate=_OFFERED))
        drain = turn.settle()
    updates = _WORK.updates * len(done.committed)
    found = {"rate": updates / (done.seconds + drain), "updates": updates, **percentiles(delays)}
    if server.readable:
        found["server"] = 1e6 * server.seconds / updates
    return found
