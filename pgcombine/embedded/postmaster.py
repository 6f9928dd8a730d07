"""The process of a server: its state, its start and its end, and its log.

The processes of a server that pgcombine started hold the lock *alive*. A server that a user started doesn't hold it:
such a server is found by its pid file.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from pgcombine.embedded import account as accounts
from pgcombine.embedded import locking, network, processes
from pgcombine.embedded.account import Account
from pgcombine.embedded.cluster import Cluster, environment, failure
from pgcombine.embedded.processes import PidFile
from pgcombine.embedded.programs import Programs
from pgcombine.errors import ConfigError

START_TIMEOUT = 300.0  # seconds; recovery after a crash may take minutes
STOP_TIMEOUT = 120.0
GRACE = 1.0  # seconds in which the other processes may end by themselves after the postmaster was killed
# seconds; if the lock is held for so long and no process of the server is visible here, the server runs elsewhere
ELSEWHERE = 10.0
ATTEMPTS = 5  # starts, each on another port if the last one was taken
LOG_BYTES = 8 * 1024 * 1024


class Postmaster:
    """The postmaster, the first process of ``cluster``'s server. The process and the data need not exist yet."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._home = cluster.directory.parent
        self.log = self._home / "server.log"
        self.older_log = self._home / "server.log.1"

    def is_alive(self) -> bool:
        """Whether a process of the server exists, even while the server starts or stops."""
        if locking.held(self._cluster.alive):
            return True
        found = PidFile.read(self._cluster.data)  # a user may have started the server with pg_ctl
        return found is not None and processes.works_in(found.pid, self._cluster.data)

    def ready(self) -> PidFile | None:
        """Return the pid file if the server accepts connections, else None."""
        found = PidFile.read(self._cluster.data) if self.is_alive() else None
        return found if found and found.ready and found.port and network.answers(found.port) else None

    def wait_until_ready(self) -> bool:
        """Wait until the server is ready, or no process of the server exists. Returns whether the server is ready.

        Processes that a killed server left are killed after GRACE seconds. Raises ConfigError if the server is neither
        ready nor gone in time, or if it runs on another machine or in another container.
        """
        data = self._cluster.data
        orphaned_since: float | None = None
        late = f"was neither ready nor gone after {START_TIMEOUT:g} s; see {self.log}"
        for found in self._while_alive(START_TIMEOUT, late):
            if self.ready():
                return True
            now = time.monotonic()
            if found is None or processes.works_in(found.pid, data):
                orphaned_since = None
            elif orphaned_since is None:
                orphaned_since = now
            elif now - orphaned_since > GRACE:
                killed = processes.kill_left_over(data)
                if not killed and now - orphaned_since > ELSEWHERE:
                    raise ConfigError(
                        f"{data} is used by a server that isn't on this machine or is in another container "
                        f"(process {found.pid} there); stop that server, or choose another PGCOMBINE_HOME"
                    )
        return False

    def start(self, programs: Programs, settings: Mapping[str, str]) -> None:
        """Start the server, which must not run yet, on a free port. Raises ConfigError with PostgreSQL's reason."""
        account, programs = accounts.choose(self._cluster.data, programs)
        port = self._cluster.port()
        why: str | None = None
        for _ in range(ATTEMPTS):
            if port is None or not network.port_is_free(port):
                port = network.free_port()
            self._cluster.record("port", port)
            self.trim_log()
            seen = self.log.stat().st_size if self.log.exists() else 0
            self._launch(self._command(account, programs, settings, port), account)
            if self.wait_until_ready():
                return
            with self.log.open(encoding="utf-8", errors="replace") as log:
                log.seek(seen)
                why = failure(log.read())
            # Another attempt may succeed if the port is taken now, or if no error was logged: the server was killed.
            if why and network.port_is_free(port):
                break
        raise ConfigError(f"the server in {self._home} didn't start: {why or 'it was killed'} (see {self.log})")

    def stop(self, how: signal.Signals) -> None:
        """Send the signal to the server, if it runs, and return when it has ended.

        Raises ConfigError if the server still runs after STOP_TIMEOUT seconds.
        """
        data = self._cluster.data
        signalled: int | None = None
        sockets: Path | None = None
        late = f"still runs after {STOP_TIMEOUT:g} s; close its connections, or stop it with --mode fast or immediate"
        for found in self._while_alive(STOP_TIMEOUT, late):
            if found is None:
                continue
            sockets = found.socket_directory or sockets
            if not processes.works_in(found.pid, data):
                processes.kill_left_over(data)
            elif found.pid != signalled:
                os.kill(found.pid, how)
                signalled = found.pid
        if sockets and self._home not in sockets.parents:
            with suppress(OSError):  # for example, the directory isn't empty
                sockets.rmdir()

    def trim_log(self) -> None:
        """If the log exceeds LOG_BYTES, copy its last LOG_BYTES bytes to ``server.log.1``, and empty the log."""
        try:
            if self.log.stat().st_size > LOG_BYTES:
                # The log may be truncated while the server runs, since the server appends to it.
                with self.log.open("rb") as log:
                    log.seek(-LOG_BYTES, os.SEEK_END)
                    self.older_log.touch(mode=0o600)
                    self.older_log.chmod(0o600)
                    self.older_log.write_bytes(log.read(LOG_BYTES))
                os.truncate(self.log, 0)
        except OSError:  # there is no log yet, or this user can't write it; a start must not fail because of that
            return

    def _while_alive(self, timeout: float, late: str) -> Iterator[PidFile | None]:
        """Yield the pid file repeatedly until no process of the server is left."""
        deadline = time.monotonic() + timeout
        while self.is_alive():
            yield PidFile.read(self._cluster.data)
            if time.monotonic() > deadline:
                raise ConfigError(f"the server in {self._home} {late}")
            time.sleep(locking.POLL)

    def _command(self, account: Account, programs: Programs, settings: Mapping[str, str], port: int) -> list[str]:
        cluster = self._cluster
        sockets = network.socket_directory(cluster.directory / "run", account)
        command = [*account.prefix, programs.path("postgres"), "-D", account.directory(cluster.data)]
        own = {
            "cluster_name": processes.mark(cluster.data),
            "port": str(port),
            "listen_addresses": network.HOST,
            "unix_socket_directories": '"{}"'.format(str(sockets).replace('"', '""')) if sockets else "",
        }
        for name, value in {**settings, **own}.items():
            command += ["-c", f"{name}={value}"]
        return command

    def _launch(self, command: list[str], account: Account) -> None:
        """Start the server in its own session, detached from this process. The server inherits the lock *alive*."""
        with (
            locking.exclusive(self._cluster.alive, timeout=STOP_TIMEOUT) as alive,
            open(os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as log,
        ):
            # No process of the server is left, so the pid file is stale. Its pid may belong to another process now, and
            # then PostgreSQL would refuse to start.
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
