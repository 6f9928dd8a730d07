"""The server of a run: PostgreSQL 18 or 15 in a temporary directory.

Version 18 comes from the extra ``embedded``, version 15 from Debian's package ``postgresql-15``. ``own`` raises
ConfigError if these programs aren't installed or don't start.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psutil

from pgcombine.database.connect import connect
from pgcombine.embedded import programs
from pgcombine.embedded.cluster import DATABASE, SUPERUSER, Cluster
from pgcombine.embedded.network import HOST
from pgcombine.embedded.postmaster import Postmaster
from pgcombine.embedded.server import SETTINGS
from pgcombine.errors import ConfigError

DEBIAN = Path("/usr/lib/postgresql")
VERSIONS = (18, 15)
# The embedded server's settings, but with full durability and rare automatic checkpoints.
OWN = {
    **SETTINGS,
    "synchronous_commit": "on",
    "fsync": "on",
    "full_page_writes": "on",
    "max_wal_size": "16GB",
    "checkpoint_timeout": "30min",
}
SHOWN = (
    "synchronous_commit",
    "fsync",
    "full_page_writes",
    "wal_level",
    "wal_compression",
    "shared_buffers",
    "work_mem",
    "maintenance_work_mem",
    "effective_cache_size",
    "max_wal_size",
    "checkpoint_timeout",
    "autovacuum",
    "autovacuum_naptime",
    "max_connections",
    "random_page_cost",
    "jit",
    "deadlock_timeout",
    "shared_preload_libraries",
)


@contextmanager
def own(version: int, **settings: str) -> Iterator[str]:
    """Run a server with the settings ``OWN`` and ``settings`` during the block. Yields its superuser's URI."""
    chosen = find(version)
    with tempfile.TemporaryDirectory(prefix="pgcombine-peers-", ignore_cleanup_errors=True) as home:
        os.chmod(home, 0o711)  # the server may run as another account, which must enter the directory
        cluster = Cluster(Path(home, "postgres"))
        cluster.create(chosen)
        # PostgreSQL 15 opens its data directory by the absolute path, so its account must be able to enter the parent
        os.chmod(cluster.directory, 0o711)
        postmaster = Postmaster(cluster)
        postmaster.start(chosen, {**OWN, **settings})
        try:
            yield f"postgresql://{SUPERUSER}:{cluster.password('password')}@{HOST}:{cluster.port()}/{DATABASE}"
        finally:
            postmaster.stop(signal.SIGINT)


def find(version: int) -> programs.Programs:
    """Return the programs of a major version, from the wheel or from Debian. Raises ConfigError if there are none."""
    try:
        return programs.find(version)
    except ConfigError:
        debian = programs.Programs(version, DEBIAN / str(version))
        if Path(debian.path("postgres")).exists():
            return debian
        raise


def describe(dsn: str) -> dict[str, object]:
    """Return the conditions of a run: the server's version and settings, cores, memory, load, and the commit."""
    with closing(connect(dsn)) as connection:
        found = connection.execute(
            "select name, current_setting(name) from unnest(%s::text[]) as name "
            "where current_setting(name, true) is not null",
            (list(SHOWN),),
        ).fetchall()
        version = connection.execute("select version()").fetchone()
    assert version is not None
    return {
        "version": version[0],
        "settings": {str(name): str(value) for name, value in found},
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "load_average": [round(one, 2) for one in os.getloadavg()],
        "commit": _commit(),
    }


def _commit() -> str:
    if shutil.which("git") is None:
        return "unknown"
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or "unknown"
