"""What runs in a data directory: PostgreSQL's own pid file, and the processes themselves.

A pid file outlives its server when that was killed, and its number may be another process's by then; a
process counts as the directory's only if it is PostgreSQL and works there. Where a program may not ask for
another account's working directory (root in most containers), the mark in its command line says so.
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
    """What ``postmaster.pid`` says so far; a server that is starting writes it bit by bit."""

    pid: int
    port: int | None = None
    socket_directory: Path | None = None
    ready: bool = False

    @classmethod
    def read(cls, data: Path) -> PidFile | None:
        """The pid file of the data directory; None if there is none, or nothing that makes sense in it."""
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
    """A name for the data directory that its server shows in the command line of each of its processes."""
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
    """The PostgreSQL processes of the data directory, as psutil knows them."""
    for process in _psutil().process_iter():
        if works_in(process.pid, data):
            yield process


def kill_left_over(data: Path) -> int:
    """Kill what a server that was killed left running in its data directory; how many processes that were.

    They hold its shared memory, which keeps the next server from starting, and serve no client any more.
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
    except ModuleNotFoundError as error:  # of the extra, as the programs are
        raise ConfigError(f"the embedded PostgreSQL is not installed; run {INSTALL}") from error
