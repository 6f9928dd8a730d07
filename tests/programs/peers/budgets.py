"""``python -m tests.programs.peers.budgets``: ways to take from amounts, never more than there is.

Three figures, for each contender in turn: ``budget-hot-32`` (one key, 32 clients, 5 ms of other work, a tenth rolls
back), ``budget-many`` (100,000 keys, 8 clients, no other work) and ``budget-runs-out`` (as the first, without
rollbacks, until nothing is left). Prints the medians: takes a second, the time that a transaction takes besides its
other work, the server's processor time a take (with a worker's), how much more was taken than there was, and refusals
although something was left. Redis is measured if ``redis-server`` is installed; its clients are threads here.
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
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import psutil

from pgcombine.bench import pgbench
from pgcombine.bench.scratch import running, throwaway_database
from pgcombine.database.connect import Connection, connect, one

from . import server
from .processor import ServerTime, family_seconds

KEYS, LIMIT, PLENTY, SLOTS = 100_000, 4_000, 10**9, 16
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
    return text + ("\\if :r = 1\nrollback;\n\\else\ncommit;\n\\endif\n" if figure == "budget-hot-32" else "commit;\n")


def measure(dsn: str, contender: Contender, figure: str, seconds: float) -> dict[str, float]:
    keys, amount = (KEYS, 1000) if figure == "budget-many" else (1, LIMIT if "out" in figure else PLENTY)
    clients = 8 if figure == "budget-many" else 32
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
            run = pgbench.start(
                dsn, script(contender, figure), "-l", f"--log-prefix={prefix}", clients=clients, seconds=seconds
            )
            done = pgbench.finish(run, seconds + 60)
        processor = used.seconds + (family_seconds(worker) - before if worker else 0.0)
        times = [
            int(line.split()[2]) / 1000 for path in Path(directory).iterdir() for line in path.read_text().splitlines()
        ]
    other = 0 if figure == "budget-many" else 1000 * OTHER_WORK
    waits = statistics.quantiles((time - other for time in times), n=100)
    found = {
        "takes/s": done.transactions / done.seconds,
        "p50 ms": waits[49],
        "p99 ms": waits[98],
        "µs a take": 1e6 * processor / done.transactions,
    }
    if figure == "budget-runs-out":
        taken, wrong, length = one(
            connection,
            "with o as (select *, max(at) filter (where ok) over () as last, min(at) over () as first "
            "from bench.outcome) select count(*) filter (where ok), count(*) filter (where not ok and at < last), "
            "extract(epoch from max(last) - min(first)) from o",
        )
        found |= {"takes/s": taken / float(length), "over": taken - LIMIT, "false refusals": wrong}
        left = one(connection, contender.left)[0]
        assert contender.name.endswith("slots") or left == LIMIT - taken, (contender.name, left, taken)
    return found


LUA = "if tonumber(redis.call('get', KEYS[1])) >= 1 then redis.call('decr', KEYS[1]) return 1 end return 0"


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
    """Measure Redis, which writes each command to its log before it answers. The threads' own time isn't counted."""
    keys, amount = (KEYS, 1000) if figure == "budget-many" else (1, LIMIT if "out" in figure else PLENTY)
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
                while time.monotonic() < until:
                    began = time.monotonic()
                    key = random.randint(1, keys)
                    ok = ask(link, "eval", LUA, 1, key) == b":1\r\n"
                    (taken if ok else refused).append(time.monotonic())
                    waits.append(1000 * (time.monotonic() - began))
                    if figure != "budget-many":
                        time.sleep(OTHER_WORK)
                    if ok and figure == "budget-hot-32" and random.random() < 0.1:
                        ask(link, "incr", key)

        with connected() as link:
            for key in range(1, keys + 1):
                ask(link, "set", key, amount)
        before, start, until = family_seconds(process), time.monotonic(), time.monotonic() + seconds
        threads = [threading.Thread(target=client) for _ in range(8 if figure == "budget-many" else 32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        processor = family_seconds(process) - before
    quantiles = statistics.quantiles(waits, n=100)
    ended = max(taken) if figure == "budget-runs-out" else until
    found = {
        "takes/s": len(taken) / (ended - start),
        "p50 ms": quantiles[49],
        "p99 ms": quantiles[98],
        "µs a take": 1e6 * processor / len(waits),
    }
    if figure == "budget-runs-out":
        found |= {"over": len(taken) - LIMIT, "false refusals": sum(at < ended for at in refused)}
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", type=int, choices=server.VERSIONS, default=server.VERSIONS[0])
    parser.add_argument("--dsn")
    parser.add_argument("--figure", action="append", choices=FIGURES, default=[])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args(arguments)
    with nullcontext(options.dsn) if options.dsn else server.own(options.server) as dsn:
        for figure in options.figure or FIGURES:
            print(f"\n## {figure}\n")
            rounds = defaultdict(list)
            for _ in range(options.rounds):
                for contender in CONTENDERS:
                    rounds[contender.name].append(measure(dsn, contender, figure, options.seconds))
                if shutil.which("redis-server"):
                    rounds["Redis, script"].append(of_redis(figure, options.seconds))
            names = list(rounds["budget"][0])
            print(f"| | {' | '.join(names)} |\n|---{'|---' * len(names)}|")
            for name, found in rounds.items():
                medians = [statistics.median(one[metric] for one in found) for metric in names]
                print(f"| {name} | {' | '.join(f'{median:,.4g}' for median in medians)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
