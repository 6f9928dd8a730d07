"""No more connections at once than a load may have, over all executors.

A slot is an advisory lock in the database. On each machine a task first takes one of as many lock files, so that no
more tasks of it than may be connected even try; then it connects and tries the slots. Where all are taken, by tasks
of other machines, it disconnects and tries again after a moment.
"""

from __future__ import annotations

import fcntl
import os
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from pgcombine.database import Connection, connect

NAME = "pgcombine spark"  # application_name
_PAUSE = 0.1  # seconds between two tries, about


@contextmanager
def connected(conninfo: str, load: str, limit: int) -> Iterator[Connection]:
    """A connection that counts among the ``limit`` that writers of ``load`` may have at once; 0: no limit.

    The lock belongs to the session: behind a pooler in transaction mode set the limit there.
    """
    if not limit:
        with closing(connect(conninfo, name=NAME)) as connection:
            yield connection
        return
    with _file_slot(load, limit):
        while True:
            with closing(connect(conninfo, name=NAME)) as connection:
                if _take_slot(connection, load, limit):
                    yield connection
                    return
            time.sleep(random.uniform(0.5, 1.5) * _PAUSE)


def _take_slot(connection: Connection, load: str, limit: int) -> bool:
    row = connection.execute("select pgcombine.take_slot(%s, %s)", (load, limit)).fetchone()
    assert row is not None
    return bool(row[0])


@contextmanager
def _file_slot(load: str, limit: int) -> Iterator[None]:
    """One of ``limit`` files of this machine locked; the lock ends with the process at the latest."""
    directory = Path(tempfile.gettempdir()) / f"pgcombine-slots-{os.getuid()}"
    directory.mkdir(mode=0o700, exist_ok=True)
    if directory.stat().st_uid != os.getuid():
        raise PermissionError(f"{directory} belongs to somebody else")
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


def remove_files(load: str) -> None:
    """Remove a load's lock files of this machine, when its tasks have ended."""
    for file in (Path(tempfile.gettempdir()) / f"pgcombine-slots-{os.getuid()}").glob(f"{load}-*"):
        file.unlink(missing_ok=True)
