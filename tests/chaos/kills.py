"""Kill workers, backends and the server at random while producers enqueue; then count the updates.

``python -m tests.chaos.kills --seconds 60`` starts its own embedded server, four producers and three workers,
each a process. Again and again the program waits for the next change of a value, and kills a worker, a session's
backend or the server with -9, or terminates a backend. At the end workers drain the queue. Then these statements must
be true:

- the values are the sums over all committed updates. Each transaction of a producer also inserts a row into another
  table, so that a commit without an answer can be looked up;
- every acknowledged commit is there;
- each key's changes, appended to a table by an SQL observer, are an unbroken chain from nothing to the value;
- no worker has ended by itself, except for workers that couldn't connect to the server.

The program prints one JSON line. Its status is 1 if one of the statements is false.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psycopg
from psycopg.types.json import Jsonb

sys.path.insert(0, str(Path(__file__).parents[1]))

from support import eventually, run_cli, start_cli
from support.audit import audit, audited, follow
from support.queues import add, enqueue_arrays, make_queue, one, values

PRODUCERS = 4
WORKERS = 3
WORDS = 40
VICTIMS = {"worker": 5, "backend terminated": 3, "backend": 2, "server": 1}  # relative frequencies


@dataclass
class Outcome:
    """The counts of a run, and in ``wrong`` the statements that are false.

    ``ambiguous`` counts commits that happened, but whose answer no producer recorded. ``restarts`` counts workers that
    ended because they found no server at their start; each was replaced by another one.
    """

    seed: int
    seconds: float
    kills: dict[str, int]
    restarts: int = 0
    transactions: int = 0
    acknowledged: int = 0
    ambiguous: int = 0
    updates: int = 0
    changes: int = 0
    wrong: list[str] = field(default_factory=list)


def produce(dsn: str, producer: int, acknowledgements: Path) -> None:
    """Enqueue until killed; append a line to ``acknowledgements`` for each commit that was answered."""
    chance = random.Random(producer)
    number = 0
    with acknowledgements.open("a") as written:
        while True:
            with suppress(psycopg.Error), psycopg.connect(dsn, connect_timeout=5) as conn:
                while True:
                    number += 1
                    words = chance.choices(range(WORDS), k=chance.choice([chance.randrange(1, 20), 40]))
                    updates = [(f"w{word}", chance.choice([1, 1, 2, -1, -2])) for word in words]
                    if len(updates) < 32:
                        add(conn, updates)
                    else:
                        enqueue_arrays(conn, updates)
                    conn.execute("insert into public.token values (%s, %s, %s)", (producer, number, Jsonb(updates)))
                    if chance.random() < 0.1:
                        conn.rollback()
                        continue
                    conn.commit()
                    print(number, file=written, flush=True)
                    # Write more slowly than the workers combine, so that they can drain the queue at the end.
                    time.sleep(0.02)
            time.sleep(0.05)  # after an error the server may be unreachable: wait before the next attempt


def run(home: Path, seconds: float, seed: int) -> Outcome:
    """Kill processes for ``seconds``, then check. ``home`` is a directory for an embedded server."""
    chance = random.Random(seed)
    outcome = Outcome(seed, seconds, dict.fromkeys(VICTIMS, 0))
    env = {"PGCOMBINE_HOME": home, "PGCOMBINE_DSN": None}
    dsn = run_cli("dsn", env=env).stdout.strip()
    with psycopg.connect(dsn, autocommit=True) as conn:
        make_queue(conn, buckets=4, pass_limit=200)  # with this limit, a backlog after an outage takes several passes
        audit(conn)
        conn.execute(
            "create table public.token (producer int, number int, updates jsonb, primary key (producer, number))"
        )
    acknowledgements = [home / f"acknowledged-{number}" for number in range(PRODUCERS)]
    with ExitStack() as stack:
        told = stack.enter_context((home / "workers.log").open("a"))

        def start_worker() -> subprocess.Popen[str]:
            return stack.enter_context(start_cli("worker", "wc", "--poll", 0.2, env=env, stdout=told))

        def revive() -> bool:
            for index, worker in enumerate(workers):
                # status 1: the worker found no server when it started; start another one, as a supervisor does
                if worker.poll() == 1:
                    workers[index] = start_worker()
                    outcome.restarts += 1
            return True

        workers = [start_worker() for _ in range(WORKERS)]
        with producers(dsn, acknowledgements):
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                # wait until a pass changes a value
                before = changes(dsn)
                try:
                    eventually(lambda before=before: changes(dsn) > before, timeout=60, what="passes go on")
                except AssertionError as error:
                    error.add_note(f"{outcome}\n{[worker.poll() for worker in workers]}\n{state(dsn)}")
                    raise
                revive()
                time.sleep(chance.uniform(0, 0.5))  # kill at a random moment
                victim = chance.choices(list(VICTIMS), weights=list(VICTIMS.values()))[0]
                if victim == "worker":
                    index = chance.randrange(WORKERS)
                    workers[index].kill()
                    workers[index] = start_worker()
                    outcome.kills[victim] += 1
                elif victim == "server":
                    outcome.kills[victim] += kill_server(home, env)
                else:
                    outcome.kills[victim] += kill_backend(dsn, chance, hard=victim == "backend")
        # ``drained`` also waits for the backends of the killed producers, whose last transactions may still run
        eventually(lambda: revive() and drained(dsn), timeout=180, what="what is left is combined")
    ended = [line for line in (home / "workers.log").read_text().splitlines() if line.startswith("pgcombine: ")]
    for line in ended:
        # These lines are expected: a worker that starts while the server is down fails, or starts the server itself.
        if "can't connect to PostgreSQL" not in line and "started PostgreSQL" not in line:
            outcome.wrong.append(f"a worker ended by itself: {line}")
    if "Traceback" in (home / "workers.log").read_text():
        outcome.wrong.append("a worker ended with a traceback: " + (home / "workers.log").read_text()[-2000:])
    count(dsn, acknowledgements, outcome)
    return outcome


@contextmanager
def producers(dsn: str, acknowledgements: list[Path]) -> Iterator[None]:
    running = [
        subprocess.Popen([sys.executable, __file__, "--produce", dsn, str(number), str(path)])
        for number, path in enumerate(acknowledgements)
    ]
    try:
        yield
    finally:
        for producer in running:
            producer.kill()
            producer.wait()


def kill_server(home: Path, env: dict[str, object]) -> int:
    for file in home.rglob("postmaster.pid"):
        with suppress(ProcessLookupError, ValueError):
            os.kill(int(file.read_text().split("\n")[0]), signal.SIGKILL)
    started = run_cli("server", "start", env=env)
    assert started.returncode == 0, started.stderr
    return 1


def kill_backend(dsn: str, chance: random.Random, *, hard: bool) -> int:
    """End a random backend, if there is one. Returns how many were ended.

    With ``hard`` the backend is killed with SIGKILL, after which the server ends all sessions and recovers.
    """
    with suppress(psycopg.Error), psycopg.connect(dsn, autocommit=True, connect_timeout=5) as conn:
        found = conn.execute(
            "select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()"
        ).fetchall()
        if found:
            (pid,) = chance.choice(found)
            if hard:
                os.kill(pid, signal.SIGKILL)
            else:
                conn.execute("select pg_terminate_backend(%s)", (pid,))
            return 1
    return 0


def changes(dsn: str) -> int:
    """Return the number of the last change so far, or 0 while the server is unreachable."""
    with suppress(psycopg.OperationalError), psycopg.connect(dsn, autocommit=True, connect_timeout=5) as conn:
        return int(one(conn, "select coalesce(max(id), 0) from public.wc_audit"))
    return 0


STATE = """
select format('%s %s %s %s since %s: %s', pid, application_name, state, wait_event, state_change, query)
from pg_stat_activity where backend_type = 'client backend'
union all select format('failure: %s', f) from pgcombine.failure f
union all select format('quarantined: %s', k) from pgcombine.quarantined_key k
union all select format('lock: %s %s %s %s', pid, locktype, mode, granted) from pg_locks where locktype = 'advisory'
union all select format('pending: %s', pgcombine.backlog('wc'))
"""


def state(dsn: str) -> str:
    with psycopg.connect(dsn, autocommit=True) as conn:
        return "\n".join(line for (line,) in conn.execute(STATE).fetchall())


def drained(dsn: str) -> bool:
    producers = "select count(*) from pg_stat_activity where query ~ 'token values' and pid <> pg_backend_pid()"
    with suppress(psycopg.OperationalError), psycopg.connect(dsn, autocommit=True) as conn:
        return not one(conn, producers) and not one(conn, "select pgcombine.backlog('wc')")
    return False


def count(dsn: str, acknowledgements: list[Path], outcome: Outcome) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        tokens = conn.execute("select producer, number, updates from public.token").fetchall()
        expected: Counter[str] = Counter()
        for _, _, updates in tokens:
            for word, n in updates:
                expected[word] += n
                outcome.updates += 1
        there = {(producer, number) for producer, number, _ in tokens}
        answered = {
            (producer, int(line))
            for producer, path in enumerate(acknowledgements)
            for line in path.read_text().splitlines()
            if line
        }
        told = audited(conn)
        found = values(conn)
    outcome.transactions, outcome.acknowledged = len(there), len(answered)
    outcome.ambiguous, outcome.changes = len(there - answered), len(told)
    if not there:
        outcome.wrong.append("nothing was committed at all")
    if lost := answered - there:
        outcome.wrong.append(f"{len(lost)} acknowledged commits are lost")
    right = {word: n for word, n in expected.items() if n}
    if found != right:
        differ = {
            word: (right.get(word), found.get(word)) for word in right | found if right.get(word) != found.get(word)
        }
        outcome.wrong.append(f"values differ (committed, found): {differ}")
    try:
        if follow(told) != found:
            outcome.wrong.append("the chains of changes don't lead to the values")
    except AssertionError as error:
        outcome.wrong.append(f"a chain breaks: {error}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--produce", nargs=3, metavar=("DSN", "NUMBER", "FILE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.produce:
        dsn, number, file = arguments.produce
        produce(dsn, int(number), Path(file))
    with tempfile.TemporaryDirectory(prefix="kills-") as home:
        try:
            outcome = run(Path(home), arguments.seconds, arguments.seed)
        finally:
            run_cli("server", "stop", env={"PGCOMBINE_HOME": home})
    print(json.dumps(asdict(outcome)))
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
