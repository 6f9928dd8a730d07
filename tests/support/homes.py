"""Homes for embedded servers of a test's own, filled with copies of what initdb and the migration made once."""

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

# For servers that are killed and started again: what was committed is in the kernel's hands, which outlive them.
SMALL = {"shared_buffers": "16MB", "fsync": "off"}

TEMPLATE = "template_handoff"  # a database with the schema, of the superuser's

MEMORY = Path("/dev/shm")
ROOM = 4 * 1024**3  # bytes: what several processes with four servers each may need

Filled = Callable[[Path], Path]


def fits(directory: Path) -> bool:
    """Whether servers' files may go there. Containers often have 64 MB in /dev/shm."""
    return directory.is_dir() and os.access(directory, os.W_OK) and shutil.disk_usage(directory).free > ROOM


def make(home: Path) -> None:
    """A stopped server's home: the schema is in its own database, which the ordinary role owns, and in ``TEMPLATE``."""
    server = EmbeddedServer(home, version=18, settings=SMALL)
    try:
        schema.upgrade(server.start())
        with psycopg.connect(server.superuser_dsn(), autocommit=True) as conn:
            conn.execute(f"create database {TEMPLATE}")
        schema.upgrade(with_database(server.superuser_dsn(), TEMPLATE))
    finally:
        server.stop()


def copy(source: Path, home: Path) -> Path:
    """Fill a new home with the files of a stopped server; returns ``home``.

    The copies have the same passwords and the same system identifier, but ports of their own.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    subprocess.run(["cp", "-a", source / "postgres", home], check=True)  # keeps the owner, which may be another account
    for name in ("port", "alive.lock"):
        (home / "postgres" / name).unlink(missing_ok=True)
    return home


def stay(patch: pytest.MonkeyPatch, directory: Path) -> None:
    """Root's servers stay root's, under another number, so that PostgreSQL's own tools get to several of them."""
    if os.geteuid() != 0:
        return

    def other(*_: object) -> tuple[account.Account, programs.Programs]:
        raise ConfigError("the server stays this account's")

    if account._mapped(directory, programs.find()) is None:
        does_not_apply("root can't make user namespaces here, and PostgreSQL's tools refuse to run as root")
    patch.setattr(account, "_other", other)
