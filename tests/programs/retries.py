"""``python -m tests.programs.retries --calls 1000000``: retries with tokens, under kills; then everything is counted.

Eight client processes enqueue events with tokens, in random order. Several clients send the same event
at about the same time. A transaction has one event or several, under read committed, repeatable read or serializable,
and some transactions are rolled back. Meanwhile the program ends sessions by ``pg_terminate_backend`` and clients by
kill -9. After an error the client repeats the events whose commit wasn't confirmed; after a kill, a new
client repeats them. At the end the values must be the sums over the events, each counted once.

The program starts its own embedded server, or uses the database of ``--dsn``. It prints one JSON line. Its status is 1
if values are wrong, or if the number of stored tokens isn't that of the events.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psycopg

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2]))  # the client processes import this module

from support import eventually
from support.queues import make_queue, values
from support.sessions import workers

from pgcombine import CombineQueue, schema
from pgcombine.database.connect import one
from pgcombine.embedded import EmbeddedServer
from pgcombine.worker.drain import drain

CLIENTS = 8
SENT = 4  # the number of clients that send each event
WORDS = 97
LEVELS = ("read committed", "read committed", "read committed", "repeatable read", "serializable")
NAME = "retries"
ONCE = """
select count(*) filter (where pgcombine.enqueue_once('wc', e.token, e.updates))
from (select * from unnest(%s::text[], %s::jsonb[]) u (token, updates) order by token offset 0) e
"""
Order = list[int]


@dataclass
class Outcome:
    calls: int
    events: int
    seconds: float
    terminated: int
    killed: int
    appended: int  # events that a call appended instead of finding their token, and whose commit the client saw
    tokens: int
    wrong: int  # keys whose value isn't the sum over the events


def updates_of(event: int) -> list[dict[str, Any]]:
    return [{"word": f"w{(event + 31 * more) % WORDS}", "n": event % 13 + 1} for more in range(event % 3 + 1)]


def order_of(client: int, events: int) -> Order:
    """Return the events that a client sends, in order. ``SENT`` of the clients send each event."""
    mine = [event for event in range(events) if (client - event) % CLIENTS < SENT]
    # The sort key of an event is its number plus a random number below 200, another one for each client. So clients
    # send an event at about the same time, but in different orders.
    return sorted(mine, key=lambda event: event + random.Random(f"{client} {event}").randrange(200))


def send(dsn: str, client: int, events: int, positions: Any, appended: Any) -> None:
    """Send the events of a client from its position on, until the server has confirmed the commit of each."""
    order = order_of(client, events)
    dice = random.Random()
    queue = CombineQueue("wc")
    while positions[client] < len(order):
        with suppress(psycopg.Error), psycopg.connect(dsn, application_name=NAME) as conn:
            while (place := positions[client]) < len(order):
                batch = order[place : place + dice.choice((1, 10, 40))]
                count = 0
                conn.execute(f"set transaction isolation level {dice.choice(LEVELS)}".encode())
                with suppress(psycopg.errors.SerializationFailure):
                    if len(batch) == 1:
                        count = bool(queue.enqueue(conn, updates_of(batch[0]), token=f"event {batch[0]}"))
                    else:
                        tokens = [f"event {event}" for event in batch]
                        count = one(conn, ONCE, tokens, [json.dumps(updates_of(event)) for event in batch])[0]
                    if dice.random() >= 0.05:
                        conn.commit()
                        positions[client], appended[client] = place + len(batch), appended[client] + count
                conn.rollback()


def retry(dsn: str, calls: int, kills: int) -> Outcome:
    """Make the queue, and let the clients send. Up to ``kills`` sessions and ``kills`` clients are ended meanwhile."""
    events = calls // SENT
    context = multiprocessing.get_context("spawn")
    positions, appended = context.RawArray("q", CLIENTS), context.RawArray("q", CLIENTS)
    lengths = [len(order_of(client, events)) for client in range(CLIENTS)]
    ended = Counter[str]()

    def reached(goal: int) -> bool:
        assert not any(process.exitcode for process in processes), "a client failed"
        return sum(positions) >= goal

    def started(client: int) -> BaseProcess:
        process = context.Process(target=send, args=(dsn, client, events, positions, appended), daemon=True)
        process.start()
        return process

    began = time.monotonic()
    with psycopg.connect(dsn, autocommit=True) as conn:
        make_queue(conn, delete_when=None)
        with workers(dsn, "wc"):
            processes = [started(client) for client in range(CLIENTS)]
            for number in range(1, 2 * kills + 1):
                goal = number * sum(lengths) // (2 * kills + 1)
                eventually(partial(reached, goal), timeout=1200, what=f"{goal} calls")
                if number % 2:
                    found = conn.execute(
                        "select count(pg_terminate_backend(pid)) from (select pid from pg_stat_activity"
                        " where application_name = %s order by random() limit 1) a",
                        (NAME,),
                    ).fetchone()
                    ended["terminated"] += found[0] if found else 0
                    continue
                going = [client for client, process in enumerate(processes) if process.is_alive()]
                if going:
                    client = random.choice(going)
                    processes[client].kill()
                    processes[client].join()
                    processes[client] = started(client)
                    ended["killed"] += 1
            for process in processes:
                process.join()
        seconds = time.monotonic() - began
        assert list(positions) == lengths, "a client ended early"
        drain(dsn, "wc", timeout=600)
        expected: Counter[str] = Counter()
        for event in range(events):
            for update in updates_of(event):
                expected[update["word"]] += update["n"]
        combined = Counter(values(conn))
        return Outcome(
            calls=sum(lengths),
            events=events,
            seconds=round(seconds, 1),
            terminated=ended["terminated"],
            killed=ended["killed"],
            appended=sum(appended),
            tokens=one(conn, "select count(*) from pgcombine.token")[0],
            wrong=sum(expected[word] != combined[word] for word in expected | combined),
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=50, help="number of sessions to terminate, and of clients to kill")
    parser.add_argument("--dsn", help="of an empty database")
    options = parser.parse_args()
    with ExitStack() as stack:
        dsn = options.dsn
        if dsn is None:
            home = stack.enter_context(tempfile.TemporaryDirectory())
            server = EmbeddedServer(Path(home))
            dsn = server.start()
            stack.callback(server.stop)
        schema.upgrade(dsn)
        outcome = retry(dsn, options.calls, options.kills)
    print(json.dumps(asdict(outcome)))
    return int(outcome.wrong > 0 or outcome.tokens != outcome.events)


if __name__ == "__main__":
    sys.exit(main())
