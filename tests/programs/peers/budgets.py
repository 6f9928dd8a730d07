"""``python -m tests.programs.peers.budgets``: ways to take from amounts, never more than there is.

Three figures: ``budget-hot-32`` (one key, 32 clients, 5 ms of other work, a tenth rolls back), ``budget-many`` (10,000
keys, 8 clients, no other work, no rollbacks) and ``budget-runs-out`` (as the first, but each client makes 50
transactions, of which three quarters can take). In a round each contender has its turn, in an order that rotates. The
program prints the medians (least to greatest) of the rounds:

- takes a second; of ``budget-runs-out`` until nothing is left or all have ended;
- the time that a transaction takes besides its other work;
- the server's processor time a transaction, with a worker's;
- ``over``: how much more was taken than there was;
- ``false refusals``: those after which another transaction still took something.

Redis is measured if ``redis-server`` is installed. Its clients are threads of this program, whose processor time isn't
counted. A transaction that rolls back gives back what it took.
"""

from __future__ import annotations

import argparse
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import psutil

from pgcombine.bench import pgbench
from pgcombine.bench.scratch import running, throwaway_database
from pgcombine.database.connect import Connection, connect, one

from . import server
from .processor import ServerTime, family_seconds
from .report import number

KEYS, PLENTY, SLOTS = 10_000, 10**9, 16
EACH, LIMIT = 50, 1_200  # of budget-runs-out: transactions of a client, and what there is
OTHER_WORK = 0.005
WORKER = [sys.executable, "-P", "-c", "from pgcombine.cli import main; main()", "worker", "--dsn"]


@dataclass(frozen=True)
class Contender:
    """``make`` fills the keys 1 to $1 with $2 each. ``take`` sets the variable ok of pgbench to 0 or 1."""

    name: str
    make: str
    take: str
    left: str = "select sum(n) from bench.account"


ACCOUNT = (
    "create table bench.account (id int primary key, n bigint) with (fillfactor = 50); "
    "insert into bench.account select i, {amount} from generate_series(1, {keys}) i"
)
SLOTTED = (
    "create table bench.account (id int, slot int, n bigint, primary key (id, slot)) with (fillfactor = 50); "  # noqa: S608
    f"insert into bench.account select i, s, {{amount}} / {SLOTS} "
    f"from generate_series(1, {{keys}}) i, generate_series(1, {SLOTS}) s"
)
UPDATE = (
    "with t as (update bench.account set n = n - 1 where id = :k and n >= 1{} returning 1) "
    "select count(*)::int as ok from t \\gset\n"
)
CONTENDERS = (
    Contender("row update", ACCOUNT, UPDATE.format("")),
    Contender(
        "select for update",
        ACCOUNT,
        "select (n >= 1)::int as ok from bench.account where id = :k for update \\gset\n"
        "\\if :ok\nupdate bench.account set n = n - 1 where id = :k;\n\\endif\n",
    ),
    Contender(
        f"{SLOTS} slots",
        SLOTTED,
        f"\\set s random(1, {SLOTS})\n" + UPDATE.format(" and slot = :s"),
    ),
    Contender(
        "budget",
        "select pgcombine.create_budget('seats', array['id int']); "
        "select count(pgcombine.seats_add(i, {amount})) from generate_series(1, {keys}) i",
        "select pgcombine.seats_take(:k, 1)::int as ok \\gset\n",
        "select coalesce(sum(available), 0) from pgcombine.seats",
    ),
)
FIGURES = ("budget-hot-32", "budget-many", "budget-runs-out")


def script(contender: Contender, figure: str) -> str:
    keys = KEYS if figure == "budget-many" else 1
    text = f"\\set k random(1, {keys})\n\\set r random(1, 10)\nbegin;\n{contender.take}"
    if figure == "budget-runs-out":
        text += "insert into bench.outcome (ok) values (:ok = 1);\n"
    if figure != "budget-many":
        text += f"\\sleep {int(1e6 * OTHER_WORK)} us\n"
    return text + ("commit;\n" if figure == "budget-many" else "\\if :r = 1\nrollback;\n\\else\ncommit;\n\\endif\n")


def size(figure: str) -> tuple[int, int, int]:
    """How many keys there are, how much each has, and how many clients take."""
    return (KEYS, 1000, 8) if figure == "budget-many" else (1, PLENTY if figure == "budget-hot-32" else LIMIT, 32)


def measure(dsn: str, contender: Contender, figure: str, seconds: float) -> dict[str, float]:
    keys, amount, clients = size(figure)
    with ExitStack() as stack:
        database = stack.enter_context(throwaway_database(dsn))
        connection = stack.enter_context(closing(connect(database)))
        connection.execute(
            "create schema bench; create table bench.outcome (ok boolean, at timestamptz default clock_timestamp())"
        )
        connection.execute(contender.make.format(keys=keys, amount=amount).encode())
        connection.execute("vacuum analyze")
        process = None
        if contender.name == "budget":
            found = stack.enter_context(running(database, [*WORKER, database], "pgcombine worker"))
            process = psutil.Process(found.pid)
            while one(connection, "select exists (select from pgcombine_internal.busy('seats'))")[0]:
                time.sleep(0.1)
        return load(connection, database, contender, figure, clients, seconds, process)


def load(
    connection: Connection,
    dsn: str,
    contender: Contender,
    figure: str,
    clients: int,
    seconds: float,
    worker: psutil.Process | None,
) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as directory:
        prefix = str(Path(directory, "log"))
        before = family_seconds(worker) if worker else 0.0
        with ServerTime(connection) as used:
            length = ["-t", str(EACH)] if figure == "budget-runs-out" else []
            run = pgbench.start(
                dsn,
                script(contender, figure),
                "-l",
                f"--log-prefix={prefix}",
                *length,
                clients=clients,
                seconds=None if length else seconds,
            )
            done = pgbench.finish(run, seconds + 120)
        processor = used.seconds + (family_seconds(worker) - before if worker else 0.0)
        times = [
            int(line.split()[2]) / 1000 for path in Path(directory).iterdir() for line in path.read_text().splitlines()
        ]
    other = 0 if figure == "budget-many" else 1000 * OTHER_WORK
    found = figures(done.transactions / done.seconds, [time - other for time in times], processor)
    if figure == "budget-runs-out":
        taken, wrong, length = one(
            connection,
            "with o as (select *, max(at) filter (where ok) over () as last, min(at) over () as first "
            "from bench.outcome) select count(*) filter (where ok), count(*) filter (where not ok and at < last), "
            "extract(epoch from max(last) - min(first)) from o",
        )
        found |= {"takes/s": taken / float(length), "over": max(0, taken - LIMIT), "false refusals": wrong}
        left = one(connection, contender.left)[0]
        assert left == LIMIT - taken, (contender.name, left, taken)
    return found


def figures(rate: float, waits: Sequence[float], processor: float) -> dict[str, float]:
    quantiles = statistics.quantiles(waits, n=100)
    return {
        "takes/s": rate,
        "p50 ms": quantiles[49],
        "p99 ms": quantiles[98],
        "µs each": 1e6 * processor / len(waits),
    }


# Redis runs one script at a time, so its clock says in which order they took.
LUA = (
    "local t = redis.call('time') "
    "local ok = tonumber(redis.call('get', KEYS[1])) >= 1 and redis.call('decr', KEYS[1]) and 1 or 0 "
    "return string.format('%d %d%06d', ok, t[1], t[2])"
)


@contextmanager
def redis() -> Iterator[tuple[Path, psutil.Process]]:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "s")
        command = [
            "redis-server",
            "--port",
            "0",
            "--unixsocket",
            str(path),
            "--appendonly",
            "yes",
            "--appendfsync",
            "always",
            "--dir",
            directory,
        ]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            while not path.exists():
                time.sleep(0.05)
            try:
                yield path, psutil.Process(process.pid)
            finally:
                process.terminate()


def of_redis(figure: str, seconds: float) -> dict[str, float]:
    """Measure Redis, which writes each command to its log before it answers."""
    keys, amount, clients = size(figure)
    waits: list[float] = []
    taken: list[float] = []
    refused: list[float] = []
    with redis() as (path, process):

        def connected() -> socket.socket:
            link = socket.socket(socket.AF_UNIX)
            link.connect(str(path))
            return link

        def ask(link: socket.socket, *words: object) -> bytes:
            parts = [str(word).encode() for word in words]
            link.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts))
            return link.recv(4096)

        def client() -> None:
            with connected() as link:
                turns = range(EACH) if figure == "budget-runs-out" else count()
                for _ in turns:
                    began = time.monotonic()
                    if began > until:
                        return
                    key, undo = random.randint(1, keys), figure != "budget-many" and random.random() < 0.1
                    ok, at = ask(link, "eval", LUA, 1, key).split()[1:]
                    wait = time.monotonic() - began
                    if figure != "budget-many":
                        time.sleep(OTHER_WORK)
                    if ok == b"1" and undo:
                        began = time.monotonic()
                        ask(link, "incr", key)
                        wait += time.monotonic() - began
                    waits.append(1000 * wait)
                    if not undo:  # what rolls back leaves no trace in PostgreSQL, either
                        (taken if ok == b"1" else refused).append(int(at) / 1e6)

        with connected() as link:
            for key in range(1, keys + 1):
                ask(link, "set", key, amount)
            threads = [threading.Thread(target=client) for _ in range(clients)]
            before, start = family_seconds(process), time.monotonic()
            until = start + seconds if figure != "budget-runs-out" else start + 120
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            length = time.monotonic() - start
            processor = family_seconds(process) - before
    found = figures(len(waits) / length, waits, processor)
    if figure == "budget-runs-out":
        last, first = max(taken), min(taken)
        found |= {
            "takes/s": len(taken) / (last - first),
            "over": max(0, len(taken) - LIMIT),
            "false refusals": sum(at < last for at in refused),
        }
    return found


def table(figure: str, found: Mapping[str, Sequence[Mapping[str, float]]]) -> str:
    names = list(next(iter(found.values()))[0])
    lines = [f"\n## {figure}\n", f"| | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for contender, rounds in found.items():
        values = [[one[name] for one in rounds] for name in names]
        cells = [f"{number(statistics.median(v))} ({number(min(v))}\N{EN DASH}{number(max(v))})" for v in values]
        lines.append(f"| {' | '.join([contender, *cells])} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", type=int, choices=server.VERSIONS, default=server.VERSIONS[0])
    parser.add_argument("--dsn")
    parser.add_argument("--figure", action="append", choices=FIGURES, default=[])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args(arguments)
    turns: list[tuple[str, Callable[[str, str], dict[str, float]]]] = [
        (contender.name, lambda dsn, figure, contender=contender: measure(dsn, contender, figure, options.seconds))
        for contender in CONTENDERS
    ]
    if shutil.which("redis-server"):
        turns.append(("Redis, script", lambda _, figure: of_redis(figure, options.seconds)))
    else:
        print("Redis isn't measured: there is no redis-server")
    names = [name for name, _ in turns]
    with nullcontext(options.dsn) if options.dsn else server.own(options.server) as dsn:
        for figure in options.figure or FIGURES:
            found: dict[str, list[dict[str, float]]] = {name: [] for name in names}
            for _ in range(options.rounds):
                for name, turn in turns:
                    found[name].append(turn(dsn, figure))
                turns = turns[1:] + turns[:1]
            print(table(figure, found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
