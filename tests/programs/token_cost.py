"""``python -m tests.programs.token_cost``: the cost of a token in ``enqueue_once``, and of its deletion.

In each round one session calls ``enqueue`` in a loop in PL/pgSQL, then ``enqueue_once``. Each call is a transaction of
ten updates. The session's role isn't a superuser, and has only the right to enqueue. In the output, ``enqueue`` and
``enqueue_once`` are µs of the session's processor time for a call, medians of the rounds. ``ratio`` is the median of
the rounds' ratios of these times. Afterwards the program makes all tokens old, and ``trim_tokens`` deletes them;
``deletion`` is in µs of processor time for a token. The program prints one JSON line. Its status is 1 if ``ratio`` is
above 1.5.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path

import psutil
import psycopg

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.queues import make_queue
from support.roles import Roles

from pgcombine import schema
from pgcombine.database.connect import one

from .peers import server

UPDATES = json.dumps([{"word": f"word{number}", "n": number} for number in range(10)])
CALLS = {
    "enqueue": "pgcombine.enqueue('a', '{updates}')",
    "enqueue_once": "pgcombine.enqueue_once('b', 'evt_' || md5(random()::text), '{updates}')",
}
LOOP = "do $$ begin for i in 1 .. {calls} loop perform {call}; commit; end loop; end $$"


def used(conn: psycopg.Connection) -> float:
    times = psutil.Process(conn.info.backend_pid).cpu_times()
    return times.user + times.system


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=3000, help="calls of each function in a round")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    with server.own(18) as dsn:
        schema.upgrade(dsn)
        found: dict[str, list[float]] = {name: [] for name in CALLS}
        with psycopg.connect(dsn, autocommit=True) as owner, Roles(owner, dsn) as roles:
            make_queue(owner, "a")
            make_queue(owner, "b")
            writer = roles.login()
            owner.execute("select pgcombine.grant_right('enqueue', %s, 'a', 'b')", (writer.info.user,))
            writer.execute("set synchronous_commit = off")
            for number in range(options.rounds + 1):
                for name, call in CALLS.items():
                    before = used(writer)
                    loop = LOOP.format(calls=options.calls, call=call.format(updates=UPDATES))
                    writer.execute(loop.encode())
                    if number:  # the first round only fills caches
                        found[name].append(1e6 * (used(writer) - before) / options.calls)
            owner.execute("update pgcombine.token set at = at - interval '15 days'")
            owner.execute("vacuum analyze pgcombine.token")
            before, deleted = used(owner), 0
            while count := one(owner, "select pgcombine_internal.trim_tokens('b')")[0]:
                deleted += count
            trim = 1e6 * (used(owner) - before) / deleted
    medians = {name: round(statistics.median(times), 1) for name, times in found.items()}
    ratio = statistics.median(b / a for a, b in zip(found["enqueue"], found["enqueue_once"], strict=True))
    print(json.dumps({**medians, "ratio": round(ratio, 2), "deletion": round(trim, 1), "deleted": deleted}))
    return int(ratio > 1.5)


if __name__ == "__main__":
    sys.exit(main())
