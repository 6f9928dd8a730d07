"""No more connections at once than a load may have, over all executors.

A slot is an advisory lock in the database. On each machine a task first takes one of as many lock files, so that no
more tasks of it than may be connected even try; then it connects and tries the slots. Where all are taken, by tasks
of other machines, it disconnects and tries again after a moment, one task of a machine at a time: while others write,
a machine connects about once a second to look.
"""

from __future__ import annotations

import fcntl
import os
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from pgcombine.database import Connection, connect

NAME = "pgcombine spark"  # application_name
_PAUSE, _LONGEST = 0.1, 1.0  # seconds between two tries, about: at first and at last
_KEPT = 86_400.0  # seconds that a lock file stays whose load ended on another machine


@contextmanager
def connected(conninfo: str, load: str, limit: int) -> Iterator[Connection]:
    """A connection that counts among the ``limit`` that writers of ``load`` may have at once; 0: no limit.

    The lock belongs to the session: behind a pooler in transaction mode set the limit there.
    """
    if not limit:
        with closing(connect(conninfo, name=NAME)) as connection:
            yield connection
        return
    with _file_slot(load, limit), closing(_in_slot(conninfo, load, limit)) as connection:
        yield connection


def _in_slot(conninfo: str, load: str, limit: int) -> Connection:
    with open(_directory() / f"{load}-trying", "ab") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        pause = _PAUSE
        while True:
            connection = connect(conninfo, name=NAME)
            try:
                if _take_slot(connection, load, limit):
                    return connection
            except BaseException:
                connection.close()
                raise
            connection.close()
            time.sleep(random.uniform(0.5, 1.5) * pause)
            pause = min(1.5 * pause, _LONGEST)


def _take_slot(connection: Connection, load: str, limit: int) -> bool:
    row = connection.execute("select pgcombine.take_slot(%s, %s)", (load, limit)).fetchone()
    assert row is not None
    return bool(row[0])


@contextmanager
def _file_slot(load: str, limit: int) -> Iterator[None]:
    """One of ``limit`` files of this machine locked; the lock ends with the process at the latest."""
    directory = _directory()
    while True:
        for number in range(limit):
            file = os.open(directory / f"{load}-{number}", os.O_CREAT | os.O_RDWR, 0o600)
            try:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                yield
                return
            finally:
                os.close(file)
        time.sleep(random.uniform(0.5, 1.5) * _PAUSE)


def _directory() -> Path:
    """Where the lock files are; those of other machines' loads that ended long ago are removed."""
    directory = Path(tempfile.gettempdir()) / f"pgcombine-slots-{os.getuid()}"
    directory.mkdir(mode=0o700, exist_ok=True)
    if directory.stat().st_uid != os.getuid():
        raise PermissionError(f"{directory} belongs to somebody else")
    for file in directory.iterdir():
        with suppress(FileNotFoundError):
            if time.time() - file.stat().st_mtime > _KEPT:
                file.unlink()  # the slots in the database hold, should its load still write
    return directory


def remove_files(load: str) -> None:
    """Remove a load's lock files of this machine, when its tasks have ended."""
    for file in (Path(tempfile.gettempdir()) / f"pgcombine-slots-{os.getuid()}").glob(f"{load}-*"):
        file.unlink(missing_ok=True)
