"""Writers and all daemons run at once, and daemons, sessions and servers are killed. At the end each total is exact.

Server ``a`` has the queue ``plain``, with an SQL observer that appends all changes to a table, a feed ``f`` whose
consumer stores changes, and an export to a table on server ``b``. The queue ``wc`` is replicated on both servers. A
daemon that ends is started again. Again and again the test waits until a pass has changed a value of ``plain``, and
then kills a daemon, a session's backend or a server with SIGKILL, terminates a backend, or rebuckets. Other threads
hold snapshots, and look at views and web pages. Then these statements must be true:

- all acknowledged transactions of writers are there, and none that was rolled back. Each of them also inserts the seed
  of its updates into a table, so that a commit without an answer can be looked up;
- each event counts once, although several sessions send it with its token at about the same time, alone or among other
  events, in random order, and repeat it until a commit is confirmed;
- values are the sums over all committed updates, also in the exported table and on both servers;
- each key's changes are an unbroken chain to its value, those of the observer and those of the feed. The consumer
  stores the changes of a batch and the batch's offset in one transaction. So if it is killed, the next consumer begins
  with the first change that isn't stored;
- no daemon has ended by itself, except when it couldn't reach a server, and SIGTERM ends each of them.

``PGCOMBINE_TEST_CHAOS_SECONDS`` sets the length of the run.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import psycopg
import pytest
from psycopg import sql
from psycopg.types.json import Jsonb
from support.audit import Change, Ledger, Run, audit, broken, differences, problems, seconds
from support.cli import command, environment
from support.clusters import Cluster, dsns, hints, started
from support.homes import Filled
from support.queues import add, enqueue_arrays, make_queue, one, values
from support.wait import eventually

from pgcombine import Feed, ReplicatedQueue
from pgcombine.errors import IndeterminateError, PgCombineError

ROOT = Path(__file__).parents[2]
PRODUCERS, SENDERS = 4, 3
VICTIMS = {"daemon": 8, "terminate": 4, "backend": 2, "rebucket": 3, "server a": 2, "server b": 2}  # frequencies
HAPPEN = [*VICTIMS, "committed", "rolled back", "replicated", "sent", "repeated", "snapshots held", "looks"]
FEED = Feed("f", queue="plain")
SESSION = """
    select pid from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
    order by random() limit 1
"""
CHANGES = "select coalesce(max(id), 0) from public.plain_audit"
FOLLOWED = "select after = pgcombine_internal.feed_offset('f') from public.consumer"
SEEN = "select word, old_n, new_n from public.seen order by id"
STATE = """
    select format('%s %s %s since %s: %s', application_name, state, wait_event, state_change, query)
    from pg_stat_activity where backend_type = 'client backend'
    union all select format('failure: %s', f) from pgcombine.failure f
    union all select format('pending: %s', pgcombine.backlog('plain'))
"""
VIEWS = ["destination", "export_stat", "hint_stat", "pass_recent", "queue_stat", "segment_stat", "table_size", "worker"]
ONCE = """
    select pgcombine.enqueue_once('plain', e.token, e.updates)
    from (select * from unnest(%s::text[], %s::jsonb[]) u (token, updates) order by token offset 0) e
"""
# A daemon tells this when it can't reach a server, and then ends.
UNREACHED = ("can't connect to PostgreSQL", "lost the connection")


def consume(dsn: str) -> None:
    """Follow the feed, and store each batch with its offset, until this process or the server is killed."""
    with psycopg.connect(dsn, autocommit=True) as reader, psycopg.connect(dsn, autocommit=True) as store:
        after = one(store, "select after from public.consumer")
        for batch in FEED.read(reader, after=after, most=random.choice([1, 20, 1000]), follow=True):
            with store.transaction():
                for row in batch.rows:
                    store.execute(
                        "insert into public.seen (word, old_n, new_n) values (%s, %s, %s)",
                        (row["word"], row["old_n"], row["new_n"]),
                    )
                store.execute("update public.consumer set after = %s", (Jsonb(batch.after),))


def updates_of(seed: int) -> list[tuple[str, int]]:
    chance = random.Random(seed)
    return [(f"w{chance.randrange(200)}", chance.choice([1, 1, 2, -1, -2])) for _ in range(chance.randrange(1, 41))]


class Chaos(Run):
    def __init__(self, servers: Mapping[str, Cluster], directory: Path, seconds: float) -> None:
        super().__init__(seconds, HAPPEN)
        self.servers, self.directory = servers, directory
        self.a, self.b = servers["a"], servers["b"]
        self.plain, self.events, self.replicated = Ledger(), Ledger(), Ledger()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]  # the page keeps this port when it is started again
        consumer = [sys.executable, "-m", "tests.chaos.test_daemons", self.a.dsn]
        worker = ("worker", "--poll", 0.2, "--dsn")
        self.commands = {
            "consumer": consumer,
            "page": command("web", "--port", self.port, "--dsn", self.a.dsn),
            "worker 1": command(*worker, self.a.dsn),
            "worker 2": command(*worker, self.a.dsn, "--concurrency", 4),
            "worker of b": command(*worker, self.b.dsn),
            "exporter": command("export", "run", "copied", "--dsn", self.a.dsn),
            "replayer of a": command("replicas", "run", "--dsn", self.a.dsn),
            "replayer of b": command("replicas", "run", "--dsn", self.b.dsn),
        }
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.stopped = False

    def create(self) -> None:
        target = urlsplit(self.b.dsn)
        with self.a.connect() as conn:
            make_queue(conn, "plain", buckets=4, pass_limit=200)  # a backlog after an outage takes several passes
            audit(conn, "plain")
            FEED.create(conn)
            conn.execute(
                "select pgcombine.create_export('copied', 'plain', 'postgres', target => %s)",
                (f"host=127.0.0.1 port={target.port} dbname={target.path.lstrip('/')} user={target.username}",),
            )
            conn.execute("create table public.written (seed bigint not null)")
            conn.execute("create table public.seen (id bigserial, word text, old_n bigint, new_n bigint)")
            conn.execute("create table public.consumer (after jsonb)")
            conn.execute("insert into public.consumer values ('{}')")

    def chaos(self) -> Chaos:
        self.create()
        with self.beside(self.supervise):
            try:
                writers = [*[self.produce] * PRODUCERS, *[self.send] * SENDERS, self.replicate]
                self.run(*writers, self.disturb, self.hold, self.look)
                for server in self.servers.values():
                    server.start()
                if not self.wrong:
                    self.guarded(self.settle, 0)
            finally:
                self.stopped = True
        for name, process in self.running.items():
            process.terminate()
            if (status := process.wait(60)) not in (0, 1, -signal.SIGTERM):
                self.fail(f"{name} ended with {status} after SIGTERM")
        if not self.wrong:
            self.check()
        return self

    def log(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def supervise(self, _: random.Random) -> None:
        """Start each daemon, and start it again when it has ended."""
        while not self.stopped:
            for name, arguments in self.commands.items():
                if name not in self.running or self.running[name].poll() is not None:
                    with self.log(name).open("ab") as told:
                        env = environment({"PYTHONPATH": ROOT / "tests"} if name == "consumer" else {})
                        self.running[name] = subprocess.Popen(
                            arguments, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=told, stderr=told
                        )
            time.sleep(0.5)

    # writers

    def produce(self, chance: random.Random) -> None:
        while not self.over:
            with suppress(psycopg.Error), self.a.connect() as conn:
                while not self.over:
                    seed, refused = chance.getrandbits(60), chance.random() < 0.1
                    with conn.transaction(force_rollback=refused):
                        chance.choice([add, enqueue_arrays])(conn, updates_of(seed), "plain")
                        conn.execute("insert into public.written values (%s)", (seed,))
                        if refused:
                            self.plain.refuse(seed)
                    if not refused:
                        self.plain.acknowledge([], seed)
                    self.count("rolled back" if refused else "committed")
                    time.sleep(0.03)  # more slowly than workers combine, so that they can drain the queue at the end
            time.sleep(0.05)

    def send(self, chance: random.Random) -> None:
        """Send events with tokens, which follow from the time. Events are repeated until their commit is confirmed."""
        while not self.over:
            first = int(20 * (time.monotonic() - self.began))
            batch = chance.sample(range(first, first + 40), chance.choice([1, 10]))
            tokens = [f"event {event}" for event in batch]
            updates = [Jsonb([{"word": word, "n": n} for word, n in updates_of(event)]) for event in batch]
            confirmed = False
            while not confirmed:
                with suppress(psycopg.Error), psycopg.connect(self.a.direct) as conn:
                    conn.isolation_level = chance.choice(list(psycopg.IsolationLevel)[1:])
                    new = [fresh for (fresh,) in conn.execute(ONCE, (tokens, updates)).fetchall()]
                    if chance.random() < 0.05:
                        conn.rollback()
                        continue
                    conn.commit()
                    confirmed = True
                    self.count("sent", sum(new))
                    self.count("repeated", len(new) - sum(new))
            for event in batch:
                self.events.acknowledge([], event)
            time.sleep(0.1)

    def replicate(self, chance: random.Random) -> None:
        """Write to ``wc`` on both servers. A failed write is repeated until it is acknowledged."""
        with ReplicatedQueue(dsns(self.servers), "wc", timeout=2.0) as queue:
            while not self.over:
                rows = [(f"w{chance.randrange(200)}", 1) for _ in range(5)]
                token, done = None, False
                while not done:
                    try:
                        queue.enqueue(rows, token)
                        done = True
                    except PgCombineError as error:
                        token = error.token if isinstance(error, IndeterminateError) else token
                        time.sleep(0.2)
                self.replicated.acknowledge(rows)
                self.count("replicated")
                time.sleep(0.1)

    # faults

    def disturb(self, chance: random.Random) -> None:
        while not self.over:
            before = self.changes()
            try:
                eventually(lambda before=before: self.changes() > before, timeout=60, what="passes go on")
            except AssertionError as error:
                raise AssertionError(f"{error}\n{self.a.execute(STATE)}") from error
            self.wait(chance.uniform(0, 1))
            missing = [victim for victim in VICTIMS if not self.figures[victim]]
            victim = chance.choices(missing or list(VICTIMS), None if missing else list(VICTIMS.values()))[0]
            if victim == "daemon":
                self.running[chance.choice(list(self.running))].kill()
            elif victim.startswith("server"):
                server = self.servers[victim[-1]]
                server.kill()
                self.wait(chance.uniform(0, 1 if server is self.a else 5))
                server.start()
            else:
                try:
                    self.in_session(victim, chance)
                except psycopg.Error:
                    continue
            self.count(victim)

    def in_session(self, victim: str, chance: random.Random) -> None:
        with self.a.connect() as conn:
            if victim == "rebucket":
                conn.execute("select pgcombine.rebucket('plain', %s, timeout => '10 s')", (chance.choice([4, 8, 16]),))
            elif victim == "terminate":
                conn.execute("select pg_terminate_backend(%s)", (one(conn, SESSION),))
            else:  # the server then ends all sessions and recovers
                os.kill(one(conn, SESSION), signal.SIGKILL)

    def changes(self) -> int:
        """The number of the last change so far, or 0 while the server is unreachable."""
        with suppress(psycopg.Error):
            return int(self.a.one(CHANGES))
        return 0

    # what must not disturb the others

    def hold(self, chance: random.Random) -> None:
        """Hold snapshots. In each, the values must stay the same."""
        while not self.over:
            with suppress(psycopg.OperationalError), psycopg.connect(self.a.direct) as conn:
                conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                before = values(conn, "plain")
                self.wait(chance.uniform(1, 4))
                self.wrong += differences("values in a snapshot", before, values(conn, "plain"))
                self.count("snapshots held")
            self.wait(chance.uniform(1, 4))  # rebucket waits for sessions that have read the values

    def look(self, chance: random.Random) -> None:
        with httpx2.Client(base_url=f"http://127.0.0.1:{self.port}", trust_env=False, timeout=60) as reader:
            for path in cycle(["/", "/queues/plain", "/exports", "/servers"]):
                if self.over:
                    return
                with suppress(httpx2.HTTPError, psycopg.OperationalError):
                    reader.get(path).raise_for_status()
                    self.a.execute(sql.SQL("table {}").format(sql.Identifier("pgcombine", chance.choice(VIEWS))))
                    self.count("looks")
                time.sleep(1)

    # the end

    def settle(self, _: random.Random) -> None:
        """Wait until queues, feed, export and hints have drained."""
        busy = "select exists (select from pgcombine_internal.busy())"
        eventually(
            lambda: (
                not any(server.one(busy) for server in self.servers.values())
                and not self.a.one("select count(*) from pgcombine.copied_exports")
                and self.a.one(FOLLOWED)
                and not any(hints(self.servers).values())
            ),
            timeout=300,
            what="all has drained",
        )

    def check(self) -> None:
        expected: Counter[str] = Counter()
        there = {seed for (seed,) in self.a.execute("select seed from public.written")}
        for seed in (*there, *self.events.acknowledged):
            for word, n in updates_of(seed):
                expected[word] += n
        self.wrong += self.plain.problems(there)
        tokens = {int(token.split()[1]) for (token,) in self.a.execute("select token from pgcombine.token")}
        self.wrong += self.events.problems(tokens)
        copied = dict(self.b.execute("select word, n from public.copied where not pgcombine_deleted"))
        self.wrong += differences("the exported table", expected, copied)
        self.wrong += broken("the feed", [Change(*row) for row in self.a.execute(SEEN)], expected)
        with self.a.connect() as conn:
            self.wrong += problems(conn, expected, "plain")
        for name, server in self.servers.items():
            with server.connect() as conn:
                self.wrong += differences(f"wc on {name}", self.replicated.sums, values(conn))
                self.wrong += [problem for (problem,) in conn.execute("select problem from pgcombine.verify('wc')")]
        for name in self.commands.keys() - {"consumer"}:
            told = self.log(name).read_text()
            ended = [line for line in told.splitlines() if line.startswith("pgcombine: ")]
            self.wrong += [f"{name}: {line}" for line in ended if not any(why in line for why in UNREACHED)]
            if "Traceback" in told:
                self.fail(f"{name}: {told[told.index('Traceback') :][:2000]}")


@pytest.mark.slow
@pytest.mark.timeout(3900)
def test_totals_are_exact_after_kills(filled: Filled, tmp_path: Path) -> None:
    with started("ab", filled, tmp_path) as servers:
        Chaos(servers, tmp_path, seconds(30)).chaos().succeeded()


if __name__ == "__main__":
    consume(sys.argv[1])
