"""PgBouncer in front of a test's server."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from support.needs import require_program
from support.wait import eventually

CONFIGURATION = """
[databases]
* = host='{host}' port={port} user='{user}' password='{password}'

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen_port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = {servers}
max_client_conn = 200
{settings}
"""


@contextmanager
def pgbouncer(dsn: str, *, mode: str = "transaction", servers: int = 3, settings: str = "") -> Iterator[str]:
    """Run PgBouncer during the block, with a pool of at most ``servers`` connections to the server.

    ``settings`` are further lines of its configuration.

    Yields the URI of the database in ``dsn`` through PgBouncer.
    """
    program = require_program("pgbouncer")
    behind = conninfo_to_dict(dsn)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # The account ``nobody`` has no access to pytest's temporary directory.
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        configuration, log = Path(directory, "pgbouncer.ini"), Path(directory, "log")
        configuration.write_text(
            CONFIGURATION.format(
                **{name: str(behind.get(name, "")).replace("'", "''") for name in ("host", "port", "user", "password")},
                listen_port=port,
                mode=mode,
                servers=servers,
                settings=settings,
            ),
            encoding="utf-8",
        )
        account = ["-u", "nobody"] if os.geteuid() == 0 else []  # PgBouncer refuses to run as root
        with log.open("w") as output:
            process = subprocess.Popen([program, *account, str(configuration)], stdout=output, stderr=output)
        try:
            pooled = f"postgresql://anybody@127.0.0.1:{port}/{behind['dbname']}"

            def answers() -> bool:
                assert process.poll() is None, log.read_text()
                try:
                    psycopg.connect(pooled).close()
                except psycopg.OperationalError:
                    return False
                return True

            eventually(answers, what="PgBouncer answers")
            yield pooled
        finally:
            process.terminate()
            process.wait(timeout=30)


def left_behind(pooled: str, servers: int) -> list[tuple[str, str]]:
    """The session state that clients have left on PgBouncer's ``servers`` connections to the server."""
    found = []
    with ExitStack() as stack:
        # No two open transactions share a connection to the server, so these transactions use all of them.
        looks = [stack.enter_context(psycopg.connect(pooled, prepare_threshold=None)) for _ in range(servers)]
        pids = set()
        for look in looks:
            pids.add(look.execute("select pg_backend_pid()").fetchone())
            found += look.execute(
                """
                select 'advisory lock', objid::text from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()
                union all select 'listen', c from pg_listening_channels() c
                union all
                -- passes leave prepared statements on purpose: a name is the digest of the statement's text
                select 'prepared', statement from pg_prepared_statements where name !~ '^pgcombine_[0-9a-f]{32}$'
                union all select 'cursor', name from pg_cursors where name <> ''
                union all select 'temporary table', relname from pg_class
                where relnamespace = pg_my_temp_schema() and relkind = 'r'
                union all
                -- PgBouncer itself sets these settings for each client
                select 'set', name from pg_settings
                where source = 'session' and name not in ('application_name', 'client_encoding', 'DateStyle',
                    'TimeZone', 'standard_conforming_strings', 'IntervalStyle')
                """
            ).fetchall()
        assert len(pids) == servers, "each transaction must use another connection to the server"
    return found
