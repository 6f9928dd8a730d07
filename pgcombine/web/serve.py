"""The HTTP server of ``pgcombine web``."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Collection
from ipaddress import ip_address

import uvicorn

from pgcombine.errors import ConfigError
from pgcombine.runtime.loops import run_together
from pgcombine.web.application import application
from pgcombine.web.checkup import Checkup
from pgcombine.web.connections import protocol
from pgcombine.web.database import SECONDS, Database
from pgcombine.web.guard import Keys
from pgcombine.web.history import History
from pgcombine.web.lines import Lines
from pgcombine.web.pages import Site

SHORTEST_TOKEN = 16  # characters

log = logging.getLogger("pgcombine.web")


def require_token(host: str, hosts: Collection[str], token: str | None) -> None:
    """Raise ConfigError if other machines could read the pages without a token, or if the token is too short."""
    if token is not None and len(token) < SHORTEST_TOKEN:
        raise ConfigError(
            f"the token has {len(token)} characters, but needs {SHORTEST_TOKEN} (openssl rand -base64 24 makes one)"
        )
    if token is None and (hosts or not is_loopback(host)):
        what = f"under the name {min(hosts)}" if hosts else f"on {host}"
        raise ConfigError(
            f"the page {what} can be read from elsewhere, so it needs a token: --token-file or PGCOMBINE_WEB_TOKEN "
            "(or serve it on 127.0.0.1 without --allow-host)"
        )


def is_loopback(host: str) -> bool:
    """Whether ``host`` is ``localhost`` or a loopback address, which other machines can't reach."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def listening(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises ConfigError if it can't be opened, for example because the port is taken."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        sock = socket.create_server(address[:2], family=family, backlog=64)
    except socket.gaierror as error:
        raise ConfigError(f"the host {host} isn't known ({error.strerror}; check --host)") from error
    except OSError as error:
        raise ConfigError(
            f"the page can't be served on port {port} of {host} ({error.strerror}; choose another one with --port)"
        ) from error
    # connections inherit the option; without it, an answer's second packet may wait for an acknowledgement
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def serve(
    dsn: str,
    sock: socket.socket,
    stop: threading.Event,
    *,
    version: str,
    token: str | None = None,
    hosts: Collection[str] = (),
    actions: bool = False,
    seconds: float = SECONDS,
) -> None:
    """Serve the pages on a listening socket until ``stop`` is set, also while the database is unreachable.

    ``token`` is the readers' token, and ``hosts`` are the names of ``--allow-host``. ``actions`` says whether readers
    may change queues and exports. ``seconds`` is the limit of a statement. Raises SchemaError if the schema fitted this
    program and no longer does.
    """
    database = Database(dsn, seconds=seconds)
    history = History(database)
    keys = Keys(token)
    site = Site(database, history, Lines(history), Checkup(database.dsn), keys, actions, version, stop)
    server = uvicorn.Server(
        uvicorn.Config(
            application(site, hosts),
            log_config=None,
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=5,
            timeout_keep_alive=10,
            http=protocol(),
        )
    )

    def answer(_: threading.Event) -> None:
        server.run(sockets=[sock])
        stop.set()

    def end(_: threading.Event) -> None:
        stop.wait()
        server.should_exit = True

    try:
        host, port = sock.getsockname()[:2]
        log.info("web.start url=http://%s:%d/ actions=%s", f"[{host}]" if ":" in host else host, port, actions)
        run_together([answer, end, history.run], stop, "pgcombine-web")
        log.info("web.stop")
    finally:
        database.close()
        sock.close()
