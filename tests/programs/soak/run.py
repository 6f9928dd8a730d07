"""A run: load, trouble and watch run at once; then queues, exports and hints drain, and the totals are compared.

``wrong`` in the report lists faults: wrong values of a queue, wrong rows of the exported table, and problems that
``verify`` returns. A run that doesn't drain within five minutes raises AssertionError.
"""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from support.clusters import Cluster, hints
from support.queues import one
from support.wait import eventually

from .installation import Installation, installed
from .load import Load
from .trouble import Trouble
from .watch import Watch

PRODUCERS = 4
_TIMEOUT = 300.0  # seconds within which everything must drain


def run(servers: Mapping[str, Cluster], directory: Path, minutes: float, gap: float, seed: int) -> dict[str, Any]:
    """Run for ``minutes``, with a kill about every ``gap`` seconds. Returns the report."""
    seconds = 60 * minutes
    with installed(servers, directory) as installation:
        load, trouble, watch = Load(servers), Trouble(installation, seconds, gap, seed), Watch(installation)
        began = watch.began
        with _threads(watch.sample):
            with _threads(watch.probe, watch.poll, watch.browse, load.replicate, *[load.produce] * PRODUCERS):
                with _threads(trouble.kill, trouble.hold):
                    time.sleep(seconds)
                for server in servers.values():
                    server.start()
            settling = time.monotonic()
            eventually(lambda: _settled(installation), timeout=_TIMEOUT, what="queues, export and hints settle")
            settled = time.monotonic() - settling
        wrong = list(_wrong(installation, load))
        held = [at - began for at in (trouble.held_from, trouble.held_until) if at is not None]
        return {
            "seed": seed,
            "minutes": minutes,
            "transactions": load.transactions,
            "updates": sum(load.plain().values()),
            "writes to both servers": load.writes,
            "errors of writers": dict(load.errors),
            "kills": dict(trouble.kills),
            "starts": {name: daemon.starts for name, daemon in installation.daemons.items()},
            "settled after": round(settled, 1),
            "delay": _delays(watch, held),
            "lag": _percentiles([one["lag"] for one in watch.samples if one.get("lag") is not None]),
            "backlog": _percentiles([float(one["pending"]) for one in watch.samples if one.get("pending") is not None]),
            "poll": _percentiles(watch.polls),
            "page": _percentiles(watch.pages),
            "failed looks": dict(watch.failures),
            "memory": _growth(watch),
            "sizes": watch.samples[-1].get("sizes", {}),
            "wrong": wrong,
            "held": held if len(held) == 2 else [],
            "samples": watch.samples,
            "fresh": watch.fresh,
        }


@contextmanager
def _threads(*loops: Callable[[threading.Event], None]) -> Iterator[None]:
    """Run each loop in a thread during the block. After the block the first exception of a loop, if any, is raised."""
    over = threading.Event()
    raised: list[BaseException] = []

    def guarded(loop: Callable[[threading.Event], None]) -> None:
        try:
            loop(over)
        except BaseException as error:
            raised.append(error)

    with ExitStack() as stack:
        for loop in loops:
            thread = threading.Thread(target=guarded, args=(loop,), name=loop.__name__)
            thread.start()
            stack.callback(thread.join)
        stack.callback(over.set)
        yield
    if raised:
        raise raised[0]


def _settled(installation: Installation) -> bool:
    for server in installation.servers.values():
        with server.connect() as connection:
            if one(connection, "select exists (select from pgcombine_internal.busy())"):
                return False
    with installation.servers["a"].connect() as connection:
        waiting = one(connection, "select count(*) from pgcombine.copied_exports")
    return waiting == 0 and not any(hints(installation.servers).values())


def _wrong(installation: Installation, load: Load) -> Iterator[str]:
    """Yield a line for each fault, see the module's docstring."""
    a, b = installation.servers["a"], installation.servers["b"]
    plain = load.plain()
    with a.connect() as connection, b.connect() as other:
        yield from _different("values of plain", plain, connection, "select word, n from pgcombine.plain_values")
        yield from _different(
            "the exported table", plain, other, "select word, n from copied where not pgcombine_deleted"
        )
        for name, there in (("a", connection), ("b", other)):
            yield from _different(
                f"values of wc on {name}", load.replicated, there, "select word, n from pgcombine.wc_values"
            )
            for (queue,) in there.execute("select queue from pgcombine.queue").fetchall():
                for (problem,) in there.execute("select pgcombine.verify(%s)", (queue,)).fetchall():
                    yield f"{queue} on {name}: {problem}"


def _different(what: str, expected: Counter[str], connection: psycopg.Connection, query: str) -> Iterator[str]:
    found = dict(connection.execute(query.encode()).fetchall())
    if found != dict(expected):
        keys = sorted(key for key in found.keys() | expected.keys() if found.get(key) != expected.get(key))
        yield f"{what}: {len(keys)} keys differ; {keys[0]}: {found.get(keys[0])} instead of {expected.get(keys[0])}"


def printed(report: Mapping[str, Any]) -> str:
    """Return a report without its series of samples and delays, as a line of JSON."""
    return json.dumps(
        {name: value for name, value in report.items() if name not in ("samples", "fresh")}, default=float
    )


def _delays(watch: Watch, held: list[float]) -> dict[str, dict[str, float]]:
    """Return percentiles in seconds: of all delays, of those while a snapshot was held, and of those before."""
    found = {"all": _percentiles([seconds for _, seconds in watch.fresh])}
    if len(held) == 2:
        found["snapshot held"] = _percentiles([seconds for at, seconds in watch.fresh if held[0] <= at <= held[1]])
        found["before"] = _percentiles([seconds for at, seconds in watch.fresh if at < held[0]])
    return found


def _percentiles(values: list[float]) -> dict[str, float]:
    if len(values) < 2:
        return {}
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    return {"p50": round(cuts[49], 4), "p99": round(cuts[98], 4), "max": round(max(values), 4), "number": len(values)}


def _growth(watch: Watch) -> dict[str, list[float]]:
    """Return the memory of each process in MB: the medians of the first and of the last third of the samples."""
    names = sorted({name for one in watch.samples for name in one["memory"]})
    third = max(1, len(watch.samples) // 3)
    found = {}
    for name in names:
        ends = [
            [one["memory"][name] for one in part if name in one["memory"]]
            for part in (watch.samples[:third], watch.samples[-third:])
        ]
        found[name] = [round(statistics.median(part), 1) for part in ends if part]
    return found
