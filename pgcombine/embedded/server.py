"""The embedded server of a home: start, find, stop, remove.

Any number of programs may start and stop the server of a home at once. A lock makes them take turns, and all of them
get the same server. The server runs on when the program that started it ends. If the server or a program that starts it
is killed, the next start works. Failures raise :class:`ConfigError`, or OperationalError if another program holds the
lock for too long.
"""

from __future__ import annotations

import secrets
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psycopg

from pgcombine import config
from pgcombine.database import sqlfiles
from pgcombine.embedded import locking, network, postmaster
from pgcombine.embedded.cluster import DATABASE, OWNER, SUPERUSER, Cluster
from pgcombine.embedded.postmaster import Postmaster
from pgcombine.embedded.processes import PidFile
from pgcombine.errors import ConfigError

SETTINGS: Mapping[str, str] = {
    "max_connections": "200",
    "shared_buffers": "256MB",
    "max_wal_size": "2GB",
    "max_locks_per_transaction": "256",  # one transaction creates or drops all partitions of a queue
    "random_page_cost": "1.1",
    # With the default, the role pgcombine would create its tables in the schema pgcombine, which is the product's own.
    "search_path": "public",
    "jit": "off",  # JIT compilation costs more than it saves for the short statements of passes
    "log_checkpoints": "off",
    "log_min_error_statement": "panic",  # the message is enough; statements would fill the log
}

SHARED_MEMORY = 512 * 1024 * 1024  # bytes that /dev/shm should have for parallel queries

SIGNALS = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}


@dataclass(frozen=True)
class ServerStatus:
    """The state of a server. ``running`` says whether it accepts connections.

    If it doesn't, ``pid``, ``port`` and ``socket_directory`` are None.
    """

    running: bool
    pid: int | None
    port: int | None
    version: int | None  # major version of the data; None if there are no data yet
    data_directory: Path
    socket_directory: Path | None
    size: int  # bytes of the files in the data directory


class EmbeddedServer:
    """The server of one home directory.

    ``version`` is a major version of PostgreSQL. The default is the version that made the data, and for new data the
    newest. ``settings`` are PostgreSQL settings for a server that this object starts. A server that runs already keeps
    its own settings.
    """

    def __init__(self, home: Path, *, version: int | None = None, settings: Mapping[str, str] | None = None) -> None:
        self.home = Path(home).expanduser().absolute()
        self.version = version
        self.settings = {**SETTINGS, **_memory(), **(settings or {})}
        self._cluster = Cluster(self.home / "postgres")
        self._postmaster = Postmaster(self._cluster)
        self.log = self._postmaster.log

    def start(self, on_start: Callable[[ServerStatus], None] = lambda status: None) -> str:
        """Start the server if it doesn't run. Returns the server's URI. ``on_start`` is called after a start.

        Raises ConfigError if the server can't be started.
        """
        with self._usable_home():
            self._cluster.check_version(self.version)
            if self._postmaster.ready() and self._cluster.has_owner:
                self._postmaster.trim_log()
                return self.dsn()
            self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._lock(postmaster.START_TIMEOUT):
                if not self._postmaster.wait_until_ready():
                    self._start()
                    on_start(self.status())
                self._set_owner()
                return self.dsn()

    def stop(self, mode: Literal["smart", "fast", "immediate"] = "fast") -> bool:
        """Stop the server. Returns whether the server ran. The modes are those of ``pg_ctl``.

        Raises ConfigError if the server still runs after two minutes.
        """
        with self._usable_home():
            if not self._postmaster.is_alive():
                return False
            with self._lock(postmaster.STOP_TIMEOUT):
                self._postmaster.stop(SIGNALS[mode])
                return True

    def remove(self) -> bool:
        """Stop the server and delete its data and its log. Returns whether there were data.

        Raises ConfigError if the server still runs after two minutes, or if its files can't be deleted.
        """
        with self._usable_home():
            if not self.home.exists():
                return False
            with self._lock(postmaster.STOP_TIMEOUT):
                self._postmaster.stop(SIGNALS["fast"])
                there = self._cluster.exists
                self._cluster.remove()
                for log in (self.log, self._postmaster.older_log):
                    log.unlink(missing_ok=True)
                return there

    def disk_use(self) -> int | None:
        """Return the size of the data in bytes, or None if there are no data. Damaged data count, too."""
        return self._cluster.size() if self._cluster.exists else None

    def status(self) -> ServerStatus:
        """Return the present state of the server. Raises ConfigError if the data directory lacks its version file."""
        with self._usable_home():
            found = self._postmaster.ready()
            return ServerStatus(
                running=found is not None,
                pid=found.pid if found else None,
                port=found.port if found else None,
                version=self._cluster.version(),
                data_directory=self._cluster.data,
                socket_directory=found.socket_directory if found else None,
                size=self._cluster.size(),
            )

    def dsn(self) -> str:
        """Return the server's URI with the password of the database's owner, even if the server doesn't run.

        The owner is an ordinary role. So observers, which run with the worker's rights, don't have a superuser's rights
        if the worker uses this URI. Raises ConfigError if the server has never run.
        """
        with self._usable_home():
            return self._uri(OWNER, "owner-password")

    def superuser_dsn(self) -> str:
        """Return the URI of the superuser, for managing the server. Raises ConfigError if the server has never run."""
        with self._usable_home():
            return self._uri(SUPERUSER, "password")

    def _uri(self, user: str, file: str) -> str:
        found = PidFile.read(self._cluster.data)
        port = found.port if found and found.port else self._cluster.port()
        if port is None:
            raise ConfigError(f"there is no server in {self.home} yet; start it with `pgcombine server start`")
        return f"postgresql://{user}:{self._cluster.password(file)}@{network.HOST}:{port}/{DATABASE}"

    @contextmanager
    def _usable_home(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ConfigError(
                f"the embedded server can't use its directory {self.home}: {error.strerror or error} "
                f"({error.filename or self.home}); choose another with PGCOMBINE_HOME"
            ) from error

    @contextmanager
    def _lock(self, timeout: float) -> Iterator[None]:
        with locking.exclusive(self.home / "server.lock", timeout=timeout):
            yield

    def _start(self) -> None:
        """Start the server. The caller holds the lock and has checked that no server runs."""
        programs = self._cluster.programs(self.version)
        self._cluster.clean()
        if not self._cluster.exists:
            self._cluster.create(programs, durable=self.settings.get("fsync") != "off")
        self._postmaster.start(programs, self.settings)

    def _set_owner(self) -> None:
        """Make the role OWNER the owner of the database, unless this was done before."""
        if self._cluster.has_owner:
            return
        password = secrets.token_hex(24)
        settings = "select set_config('pgcombine.owner', %s, true), set_config('pgcombine.owner_password', %s, true)"
        with psycopg.connect(self.superuser_dsn()) as connection:
            connection.execute(settings, (OWNER, password))
            connection.execute(sqlfiles.query("database_owner").encode())
        self._cluster.record("owner-password", password)


def _memory() -> dict[str, str]:
    """Return the setting for System V shared memory if /dev/shm is small, as in many containers, else no setting."""
    try:
        small = shutil.disk_usage("/dev/shm").total < SHARED_MEMORY
    except OSError:  # not Linux
        return {}
    return {"dynamic_shared_memory_type": "sysv"} if small else {}


def ensure(home: Path | None = None, on_start: Callable[[ServerStatus], None] = lambda status: None) -> str:
    """Start the server of ``home`` (default: :func:`pgcombine.config.home`) if it doesn't run. Returns its URI.

    The call doesn't install or upgrade pgcombine's schema. ``on_start`` is called after a start. Raises ConfigError if
    the server can't be started.
    """
    return EmbeddedServer(config.home() if home is None else home).start(on_start)
