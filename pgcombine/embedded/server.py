"""The life of an embedded server: start, find, stop, remove.

Any number of programs may start and stop the server of a home at once. A lock makes them take turns, and all of them
get the same server. The server runs on when the program that started it ends. A server or a starting program that was
killed doesn't keep the next one from starting. Failures raise :class:`ConfigError`.
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psycopg
from psycopg import sql

from pgcombine import config
from pgcombine.database import sqlfiles
from pgcombine.embedded import account as accounts
from pgcombine.embedded import locking, network, processes
from pgcombine.embedded.cluster import DATABASE, OWNER, SUPERUSER, Cluster, environment, failure
from pgcombine.embedded.processes import PidFile
from pgcombine.errors import ConfigError

log = logging.getLogger("pgcombine.embedded")

START_TIMEOUT = 300.0  # seconds; recovery after a crash may take minutes
STOP_TIMEOUT = 120.0
GRACE = 1.0  # seconds in which the processes of a killed server may end by themselves
ELSEWHERE = 10.0  # seconds after which a server without a process here must run elsewhere
ATTEMPTS = 5
LOG_BYTES = 8 * 1024 * 1024

SETTINGS: Mapping[str, str] = {
    "max_connections": "200",
    "shared_buffers": "256MB",
    "max_wal_size": "2GB",
    "max_locks_per_transaction": "256",  # one transaction creates or drops all partitions of a queue
    "random_page_cost": "1.1",
    # else tables of the role pgcombine would go to the schema pgcombine, which is the product's own
    "search_path": "public",
    "jit": "off",  # costs more than it saves for a pass's short statements
    "log_checkpoints": "off",
    "log_min_error_statement": "panic",  # the message is enough; statements would fill the log
}

SHARED_MEMORY = 512 * 1024 * 1024  # bytes that parallel queries should have in /dev/shm

SIGNALS = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}


@dataclass(frozen=True)
class ServerStatus:
    """The state of a server. ``pid``, ``port`` and ``socket_directory`` are None while it doesn't run."""

    running: bool
    pid: int | None
    port: int | None
    version: int | None  # major version of the data; None if there are none yet
    data_directory: Path
    socket_directory: Path | None
    size: int  # bytes on disk


class EmbeddedServer:
    """The server of one home directory.

    ``version`` is a major version of PostgreSQL. The default is the version that made the data, and for new data the
    newest. ``settings`` are PostgreSQL settings for a server that this object starts. A server that runs already keeps
    its own.
    """

    def __init__(self, home: Path, *, version: int | None = None, settings: Mapping[str, str] | None = None) -> None:
        self.home = Path(home).expanduser().absolute()
        self.version = version
        self.settings = {**SETTINGS, **_memory(), **(settings or {})}
        self.log = self.home / "server.log"
        self._older_log = self.home / "server.log.1"
        self._cluster = Cluster(self.home / "postgres")

    def start(self, on_start: Callable[[ServerStatus], None] = lambda status: None) -> str:
        """Start the server if it doesn't run. Returns its URI. ``on_start`` is called if it was started now.

        Raises ConfigError if it can't be started.
        """
        with self._usable_home():
            self._cluster.check_version(self.version)
            if self._is_ready() and self._cluster.owner_password():
                self._trim_log()
                return self.dsn()
            self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._lock(START_TIMEOUT):
                if not self._settled(START_TIMEOUT):
                    self._start()
                    on_start(self.status())
                self._hand_over()
                return self.dsn()

    def stop(self, mode: Literal["smart", "fast", "immediate"] = "fast") -> bool:
        """Stop the server. Returns whether it ran. The modes are those of ``pg_ctl``.

        Raises ConfigError if it still runs after two minutes.
        """
        with self._usable_home():
            if not self._is_alive():
                return False
            with self._lock(STOP_TIMEOUT):
                return self._stop(SIGNALS[mode])

    def remove(self) -> bool:
        """Stop the server and delete its data and its log. Returns whether there were data.

        Raises ConfigError if it still runs after two minutes, or if its files can't be deleted.
        """
        with self._usable_home():
            if not self.home.exists():
                return False
            with self._lock(STOP_TIMEOUT):
                if self._is_alive():
                    self._stop(SIGNALS["fast"])
                there = self._cluster.exists
                self._cluster.remove()
                for log in (self.log, self._older_log):
                    log.unlink(missing_ok=True)
                return there

    def disk_use(self) -> int | None:
        """Return the bytes of the data, also of damaged data. None: there are no data."""
        return self._cluster.size() if self._cluster.exists else None

    def status(self) -> ServerStatus:
        """Return the state of the server now. Raises ConfigError for damaged data."""
        with self._usable_home():
            found = PidFile.read(self._cluster.data) if self._is_ready() else None
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
        """Return the server's URI with the password of the database's owner, whether it runs or not.

        The owner is an ordinary role. So observers, which run with its rights, have no superuser's rights. Until the
        database has been handed over to the owner, the URI is the superuser's. Raises ConfigError if the server never
        ran.
        """
        with self._usable_home():
            password = self._cluster.owner_password()
            return self._uri(OWNER, password) if password else self.superuser_dsn()

    def superuser_dsn(self) -> str:
        """Return the URI with the superuser's password, for managing the server. Otherwise it is like :meth:`dsn`."""
        with self._usable_home():
            return self._uri(SUPERUSER)

    def _uri(self, user: str, password: str | None = None) -> str:
        found = PidFile.read(self._cluster.data)
        port = found.port if found and found.port else self._cluster.port()
        if port is None:
            raise ConfigError(f"there is no server in {self.home} yet; start it with `pgcombine server start`")
        return f"postgresql://{user}:{password or self._cluster.password()}@{network.HOST}:{port}/{DATABASE}"

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

    def _is_alive(self) -> bool:
        """Whether a process of the server exists, also one that starts or stops."""
        if locking.held(self._cluster.alive):
            return True
        found = PidFile.read(self._cluster.data)  # a user may have started the server with pg_ctl
        return found is not None and processes.works_in(found.pid, self._cluster.data)

    def _is_ready(self) -> bool:
        if not self._is_alive():
            return False
        found = PidFile.read(self._cluster.data)
        return bool(found and found.ready and found.port and network.answers(found.port))

    def _settled(self, timeout: float) -> bool:
        """Wait until the server is ready (returns True) or none is there (returns False).

        Processes that a killed server left are killed after a moment. Raises ConfigError if neither happens in time.
        """
        data = self._cluster.data
        deadline = time.monotonic() + timeout
        orphaned_since: float | None = None
        while self._is_alive():
            if self._is_ready():
                return True
            now = time.monotonic()
            found = PidFile.read(data)
            if found is None or processes.works_in(found.pid, data):
                orphaned_since = None
            elif orphaned_since is None:
                orphaned_since = now
            elif now - orphaned_since > GRACE:
                killed = processes.kill_left_over(data)
                if not killed and now - orphaned_since > ELSEWHERE:
                    raise ConfigError(
                        f"{data} is used by a server that isn't on this machine or is in another container "
                        f"(process {found.pid} there); stop it, or choose another directory with PGCOMBINE_HOME"
                    )
            if now > deadline:
                raise ConfigError(
                    f"the server in {self.home} was neither ready nor gone after {timeout:g} s; see {self.log}"
                )
            time.sleep(locking.POLL)
        return False

    def _start(self) -> None:
        """Start the server. The caller holds the lock and has checked that no server runs."""
        cluster = self._cluster
        programs = cluster.programs(self.version)
        cluster.clean()
        if not cluster.exists:
            cluster.create(programs, durable=self.settings.get("fsync") != "off")
        account, programs = accounts.choose(cluster.data, programs)
        port = cluster.port()
        why: str | None = None
        for _ in range(ATTEMPTS):
            if port is None or not network.port_is_free(port):
                port = network.free_port()
            cluster.record_port(port)
            self._trim_log()
            seen = self.log.stat().st_size if self.log.exists() else 0
            sockets = network.socket_directory(cluster.directory / "run", account)
            settings = self.settings | {
                "cluster_name": processes.mark(cluster.data),
                "port": str(port),
                "listen_addresses": network.HOST,
                "unix_socket_directories": '"{}"'.format(str(sockets).replace('"', '""')) if sockets else "",
            }
            command = [*account.prefix, programs.path("postgres"), "-D", account.directory(cluster.data)]
            for name, value in settings.items():
                command += ["-c", f"{name}={value}"]
            self._launch(command, account)
            if self._settled(START_TIMEOUT):
                return
            with self.log.open(encoding="utf-8", errors="replace") as log:
                log.seek(seen)
                why = failure(log.read())
            if why and network.port_is_free(port):  # otherwise the port was taken just now, or the server was killed
                break
        raise ConfigError(f"the server in {self.home} didn't start: {why or 'it was killed'} (see {self.log})")

    def _hand_over(self) -> None:
        """Give the superuser's databases to the ordinary role.

        This is done once: at the first start, or later for older data. If it fails (for example because a session holds
        locks), the superuser stays the owner. A later start tries again.
        """
        if self._cluster.owner_password() is not None:
            return
        dsn = self.superuser_dsn()
        password = secrets.token_hex(24)
        try:
            with psycopg.connect(dsn, autocommit=True) as connection:
                names = connection.execute(
                    "select datname from pg_database d join pg_roles r on r.oid = d.datdba "
                    "where r.rolname = current_user and datallowconn and not datistemplate and datname <> 'postgres'"
                ).fetchall()
            for (name,) in [*names, (DATABASE,)]:
                with psycopg.connect(dsn, dbname=name) as connection:
                    connection.execute("set lock_timeout = '2s'")
                    connection.execute("select set_config('pgcombine.owner', %s, true)", (OWNER,))
                    connection.execute(sqlfiles.query("hand_over").encode())
                    connection.execute(
                        sql.SQL("alter role {} password {}").format(sql.Identifier(OWNER), sql.Literal(password))
                    )
        except psycopg.Error as error:
            log.warning("embedded.owned_by_superuser home=%s error=%s", self.home, error)
        else:
            self._cluster.record_owner_password(password)

    def _launch(self, command: list[str], account: accounts.Account) -> None:
        """Start the server detached from this process, in its own session, with the alive lock."""
        with (
            locking.exclusive(self._cluster.alive, timeout=STOP_TIMEOUT) as alive,
            open(os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as log,
        ):
            os.fchmod(log.fileno(), 0o600)  # an earlier version made the log readable to all
            # None of the server's processes is left. If the pid in the file is in use, it is another process's.
            (self._cluster.data / "postmaster.pid").unlink(missing_ok=True)
            subprocess.run(
                ["/bin/sh", "-c", '"$@" &', "sh", *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment(),
                pass_fds=[alive],
                start_new_session=True,
                check=True,
                **account.options(self._cluster.data),
            )

    def _stop(self, how: signal.Signals) -> bool:
        data = self._cluster.data
        deadline = time.monotonic() + STOP_TIMEOUT
        signalled: int | None = None
        sockets: Path | None = None
        while self._is_alive():
            found = PidFile.read(data)
            if found and found.socket_directory:
                sockets = found.socket_directory
            if found and found.pid != signalled and processes.works_in(found.pid, data):
                os.kill(found.pid, how)
                signalled = found.pid
            elif found and not processes.works_in(found.pid, data):
                processes.kill_left_over(data)
            if time.monotonic() > deadline:
                raise ConfigError(
                    f"the server in {self.home} still runs after {STOP_TIMEOUT:g} s; "
                    "close its connections, or stop it with --mode fast or immediate"
                )
            time.sleep(locking.POLL)
        if sockets and self.home not in sockets.parents:
            network.remove_socket_directory(sockets)
        return True

    def _trim_log(self) -> None:
        """Keep the log below a limit. Its end is moved to ``server.log.1``, in place of the former one."""
        try:
            if self.log.stat().st_size > LOG_BYTES:
                # The server appends to the open file, so it may be truncated while the server runs.
                with self.log.open("rb") as log:
                    log.seek(-LOG_BYTES, os.SEEK_END)
                    former = self._older_log
                    former.touch(mode=0o600)
                    former.chmod(0o600)
                    former.write_bytes(log.read(LOG_BYTES))
                os.truncate(self.log, 0)
        except OSError:  # there is no log yet, or this user may not write it; the start doesn't depend on it
            return


def _memory() -> dict[str, str]:
    """Return a setting for small /dev/shm, such as the 64 MB of containers. System V memory has no such limit."""
    try:
        small = shutil.disk_usage("/dev/shm").total < SHARED_MEMORY
    except OSError:  # not Linux
        return {}
    return {"dynamic_shared_memory_type": "sysv"} if small else {}


def ensure(home: Path | None = None, on_start: Callable[[ServerStatus], None] = lambda status: None) -> str:
    """Start the server of ``home`` (default: :func:`pgcombine.config.home`) if it doesn't run. Returns its URI.

    The database is not migrated. ``on_start`` is called if the server was started now. Raises ConfigError if it can't
    be started.
    """
    return EmbeddedServer(config.home() if home is None else home).start(on_start)
