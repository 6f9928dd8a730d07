"""PostgreSQL servers with the queue ``wc``, which tests can kill, stop, freeze and cut off.

Each server is an embedded server in its own directory, reached through a proxy. ``pgcombine/docs/several-servers.md``
explains coordinators, hints and tokens.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit
from uuid import UUID

import psycopg
from psycopg import sql

from pgcombine import Replayer, ReplicatedQueue
from pgcombine.embedded import EmbeddedServer
from pgcombine.embedded.processes import PidFile, left_over
from pgcombine.handoff import repairing
from support.homes import SMALL, TEMPLATE, Filled
from support.proxy import Proxy
from support.queues import Row, combine_all, one, values
from support.servers import with_database
from support.wait import eventually

# small, so that five servers fit in memory
SETTINGS = SMALL | {
    "max_connections": "60",
    "max_prepared_transactions": "40",
    "max_wal_size": "128MB",
    "track_commit_timestamp": "on",
    "wal_level": "replica",
}


NEW = f"create database {{}} template {TEMPLATE} strategy file_copy"
PASSWORD = "not-secret"  # the same on all servers, since in some tests a server answers at another one's address


class Cluster:
    """One server. The URI ``dsn`` leads to it through its proxy, and the URI ``direct`` past the proxy.

    Both name the database that ``fresh`` made last.
    """

    def __init__(self, name: str, home: Path) -> None:
        """``home`` holds the files of a stopped server."""
        self.name = name
        self._frozen = False
        self.embedded = EmbeddedServer(home, settings=SETTINGS)
        started = self._start()
        with psycopg.connect(started, autocommit=True) as conn:
            conn.execute(f"alter role current_user password '{PASSWORD}'")
        self.direct = self.server = _with_password(started)
        self.proxy = Proxy(urlsplit(self.server).port or 0)

    @property
    def user(self) -> str:
        return urlsplit(self.server).username or ""

    @property
    def password(self) -> str:
        return urlsplit(self.server).password or ""

    @property
    def dsn(self) -> str:
        parts = urlsplit(self.direct)
        return parts._replace(netloc=parts.netloc.rpartition(":")[0] + f":{self.proxy.port}").geturl()

    def fresh(self, database: str) -> None:
        """Start the server, heal its proxy, and make a database with the schema and the queue ``wc``."""
        self.start()
        self.proxy.heal()
        with psycopg.connect(self.server, autocommit=True) as conn:
            conn.execute(sql.SQL(NEW).format(sql.Identifier(database)))
        self.direct = with_database(self.server, database)
        with self.connect() as conn:
            conn.execute("select pgcombine.create_queue('wc', '{word text}', '{n bigint sum}', buckets => 4)")

    @contextmanager
    def connect(self) -> Iterator[psycopg.Connection]:
        """An autocommit connection past the proxy."""
        with psycopg.connect(self.direct, autocommit=True) as conn:
            yield conn

    def execute(self, statement: Any, *parameters: object) -> list[Row]:
        """Run a statement past the proxy, and return its rows, if it has any."""
        with self.connect() as conn:
            done = conn.execute(statement, *parameters)
            return done.fetchall() if done.description else []

    def one(self, query: str, *parameters: object) -> Any:
        with self.connect() as conn:
            return one(conn, query, *parameters)

    def run(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Call a function with a connection past the proxy as its first argument."""
        with self.connect() as conn:
            return function(conn, *arguments, **options)

    def combine(self) -> dict[str, int]:
        """Combine all updates, and return the values."""
        with self.connect() as conn:
            combine_all(conn)
            return values(conn)

    def cut_off(self) -> None:
        """Let the proxy end its connections and refuse new ones."""
        self.proxy.refuse = True
        self.proxy.cut()

    def start(self) -> None:
        """Start the server if it doesn't run, and let it continue if it is frozen."""
        self.thaw()
        started = _with_password(self._start())
        self.direct = with_database(started, urlsplit(self.direct).path.lstrip("/"))
        self.server = started
        self.proxy.target = urlsplit(started).port or 0

    def _start(self) -> str:
        self.embedded.start()
        return self.embedded.superuser_dsn()

    def kill(self) -> None:
        """Kill all processes of the server with SIGKILL."""
        self._signal(signal.SIGKILL)

    def stop(self) -> None:
        self.embedded.stop()

    @contextmanager
    def standby(self, home: Path) -> Iterator[Cluster]:
        """Run a hot standby during the block. It begins as a copy of this server's files and streams from this server.

        This server is stopped while its files are copied. The standby's ``direct`` leads to the standby, and its
        ``dsn`` to this server's proxy.
        """
        self.stop()
        home.mkdir()
        subprocess.run(["cp", "-a", self.embedded.home / "postgres", home], check=True)
        for name in ("port", "alive.lock"):
            (home / "postgres" / name).unlink(missing_ok=True)
        (home / "postgres" / "data" / "standby.signal").touch()
        self.start()
        parts = urlsplit(self.server)
        primary = f"host=127.0.0.1 port={parts.port} user={self.user} password={PASSWORD}"
        other = object.__new__(Cluster)
        other.name, other._frozen, other.proxy = self.name, False, self.proxy
        other.embedded = EmbeddedServer(home, settings=SETTINGS | {"primary_conninfo": primary})
        other.server = _with_password(other._start())
        other.direct = with_database(other.server, urlsplit(self.direct).path.lstrip("/"))
        try:
            yield other
        finally:
            other.embedded.stop("immediate")

    def freeze(self) -> None:
        """Stop the server's processes with SIGSTOP. The kernel still accepts connections."""
        self._frozen = True
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        if self._frozen:
            self._signal(signal.SIGCONT)
            self._frozen = False

    def _signal(self, number: signal.Signals) -> None:
        # The postmaster gets the signal first, so that it starts no process in between.
        found = PidFile.read(self._data)
        if found is not None:
            for process in sorted(left_over(self._data), key=lambda process: process.pid != found.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, number)

    @property
    def _data(self) -> Path:
        return self.embedded.home / "postgres" / "data"

    def close(self) -> None:
        self.thaw()
        self.proxy.close()
        self.embedded.stop("immediate")


Clusters = Mapping[str, Cluster]


def queue_on(clusters: Clusters, names: str = "", *, timeout: float = 4.0, **options: Any) -> ReplicatedQueue:
    """The queue for a writer that names these servers in this order, by default all."""
    return ReplicatedQueue(dsns({name: clusters[name] for name in names or clusters}), "wc", timeout=timeout, **options)


def repair(cluster: Cluster) -> repairing.Repaired:
    with cluster.connect() as conn:
        return repairing.repair(conn, cluster.direct)


@contextmanager
def started(names: str, filled: Filled, directory: Path) -> Iterator[dict[str, Cluster]]:
    """Run a server for each letter of ``names`` during the block. Each has a new database with the queue ``wc``.

    libpq finds the servers' passwords in a file, since the addresses that replayers use have no passwords.
    """
    file = directory / "pgpass"
    with ExitStack() as stack:
        clusters: dict[str, Cluster] = {}
        for name in names:
            clusters[name] = Cluster(name, filled(directory / f"server-{name}"))
            stack.callback(clusters[name].close)
        lines = [f"127.0.0.1:{one.proxy.port}:*:{one.user}:{one.password}\n" for one in clusters.values()]
        file.write_text("".join(lines), encoding="utf-8")
        file.chmod(0o600)
        stack.enter_context(patch.dict(os.environ, PGPASSFILE=str(file)))
        for cluster in clusters.values():
            cluster.fresh("chaos")
        yield clusters


def empty(cluster: Cluster) -> None:
    """Replace the server's database by one that has only the schema, as on a new server."""
    name = sql.Identifier(urlsplit(cluster.direct).path.lstrip("/"))
    with psycopg.connect(cluster.server, autocommit=True) as conn:
        conn.execute(sql.SQL("drop database {} with (force)").format(name))
        conn.execute(sql.SQL(NEW).format(name))


def _with_password(dsn: str) -> str:
    parts = urlsplit(dsn)
    return parts._replace(netloc=f"{parts.username}:{PASSWORD}@{parts.hostname}:{parts.port}").geturl()


def dsns(clusters: Clusters) -> dict[str, str]:
    """The servers in the form that ReplicatedQueue accepts: name → DSN."""
    return {name: cluster.dsn for name, cluster in clusters.items()}


def hints(clusters: Clusters) -> dict[str, int]:
    found = {}
    for name, cluster in clusters.items():
        with cluster.connect() as conn:
            row = conn.execute("select count(*) from pgcombine.hint").fetchone()
            assert row is not None
            found[name] = row[0]
    return found


def tokens(cluster: Cluster) -> set[tuple[object, object]]:
    """The tokens of the writes on a server, each with the digest of its updates."""
    with cluster.connect() as conn:
        return set(conn.execute("select token, digest from pgcombine.handoff_token").fetchall())


def token_of(offset: timedelta) -> UUID:
    """A token from a clock that is wrong by ``offset``."""
    moment = int((datetime.now(UTC) + offset).timestamp() * 1000)
    return UUID(int=moment << 80 | 0x7 << 76 | secrets.randbits(12) << 64 | 0x2 << 62 | secrets.randbits(62))


def replay(clusters: Clusters, names: str = "") -> dict[str, int]:
    """Run a replayer at each server, or only at those in ``names``. Returns the sums of the replayers' counts."""
    totals: dict[str, int] = {}
    for name in names or clusters:
        done = Replayer(clusters[name].direct, min_age=0, timeout=5).replay(force=True)
        for figure, count in done.as_dict().items():
            totals[figure] = totals.get(figure, 0) + count
    return totals


def replay_all(clusters: Clusters) -> dict[str, int]:
    """Replay until no hint is left, and return the sums of the replayers' counts."""
    totals: dict[str, int] = {}

    def delivered() -> bool:
        for figure, count in replay(clusters).items():
            totals[figure] = totals.get(figure, 0) + count
        return not any(hints(clusters).values())

    eventually(delivered, what="no hints are left")
    return totals


def figures(coordinator: Cluster) -> dict[str, tuple[int, int, int]]:
    """The counts ``delivered``, ``deduplicated`` and ``quarantined`` for each destination of a coordinator."""
    with coordinator.connect() as conn:
        rows = conn.execute(
            "select destination, delivered, deduplicated, quarantined from pgcombine.handoff"
        ).fetchall()
    return {name: (delivered, deduplicated, quarantined) for name, delivered, deduplicated, quarantined in rows}


def agreed(clusters: Clusters, expected: Mapping[str, int]) -> None:
    """Check that no server has hints, and that all have the same tokens and, once combined, the values ``expected``."""
    assert hints(clusters) == dict.fromkeys(clusters, 0)
    for name, cluster in clusters.items():
        with cluster.connect() as conn:
            combine_all(conn)
            assert (name, values(conn)) == (name, dict(expected))
    held = [tokens(cluster) for cluster in clusters.values()]
    assert all(one == held[0] for one in held[1:])
