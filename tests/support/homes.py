"""Homes (the directories of embedded servers) for tests: copies of one home, so that initdb and migrations run once."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from pgcombine import schema
from pgcombine.embedded import EmbeddedServer, account, programs
from pgcombine.errors import ConfigError
from support.needs import does_not_apply
from support.servers import with_database

# fsync may be off, since tests kill only the server: the kernel still writes all committed data.
SMALL = {"shared_buffers": "16MB", "fsync": "off"}

TEMPLATE = "template_handoff"  # a database with the schema, owned by the superuser

MEMORY = Path("/dev/shm")
ROOM = 4 * 1024**3  # bytes; several test processes with up to five servers each may need this much

Filled = Callable[[Path], Path]


def fits(directory: Path) -> bool:
    """Whether a writable directory has room for servers' files. In containers /dev/shm often has only 64 MB."""
    return directory.is_dir() and os.access(directory, os.W_OK) and shutil.disk_usage(directory).free > ROOM


def make(home: Path) -> None:
    """Make the home of a stopped server. The ordinary role's database and the database ``TEMPLATE`` have the schema."""
    server = EmbeddedServer(home, version=18, settings=SMALL)
    try:
        schema.upgrade(server.start())
        with psycopg.connect(server.superuser_dsn(), autocommit=True) as conn:
            conn.execute(f"create database {TEMPLATE}")
        schema.upgrade(with_database(server.superuser_dsn(), TEMPLATE))
    finally:
        server.stop()


def copy(source: Path, home: Path) -> Path:
    """Fill a new home with the files of a stopped server, and return ``home``.

    A copy has the same passwords and the same system identifier, but not the same port.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    subprocess.run(["cp", "-a", source / "postgres", home], check=True)  # keeps the owner, which may be another account
    for name in ("port", "alive.lock"):
        (home / "postgres" / name).unlink(missing_ok=True)
    return home


def stay(patch: pytest.MonkeyPatch, directory: Path) -> None:
    """Make root run servers in a user namespace instead of as another account.

    Then root owns all homes, and PostgreSQL's tools can access them. For other users the function does nothing. Skips
    the test if root can't make user namespaces.
    """
    if os.geteuid() != 0:
        return

    def other(*_: object) -> tuple[account.Account, programs.Programs]:
        raise ConfigError("the test's server can't run as another account: run it in a user namespace")

    if account._mapped(directory, programs.find()) is None:
        does_not_apply("root can't make user namespaces here, and PostgreSQL's tools refuse to run as root")
    patch.setattr(account, "_other", other)
