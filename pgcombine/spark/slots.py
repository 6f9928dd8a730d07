"""No more connections at once than a load may have, over all executors.

A slot is an advisory lock in the database. On each machine a task first takes one of as many lock files, so that no
more tasks of it than may be connected even try; then it connects and tries the slots. Where all are taken, by tasks
of other machines, it disconnects and tries again after a moment, one task of a machine at a time: while others write,
a machine connects about once a second to look.
"""

from __future__ import annotations

import errno
import fcntl
import os
import random
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from pgcombine.database.connect import Connection, connect

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
    with _file(f"{load}-trying") as turn:
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
    while True:
        for number in range(limit):
            with _file(f"{load}-{number}") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                yield
                return
        time.sleep(random.uniform(0.5, 1.5) * _PAUSE)


@contextmanager
def _file(name: str) -> Iterator[int]:
    """A lock file, open; lock files of other machines' loads that ended long ago are removed."""
    with _directory() as directory:
        for other in os.listdir(directory):
            with suppress(FileNotFoundError):
                if time.time() - os.stat(other, dir_fd=directory, follow_symlinks=False).st_mtime > _KEPT:
                    os.unlink(other, dir_fd=directory)  # the slots in the database hold, should its load still write
        file = os.open(name, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=directory)
    try:
        yield file
    finally:
        os.close(file)


def _path() -> Path:
    return Path(tempfile.gettempdir()) / f"pgcombine-slots-{os.geteuid()}"


@contextmanager
def _directory() -> Iterator[int]:
    """The directory of the lock files, open.

    Everybody may write to the temporary folder. Raises PermissionError if what is there under the name isn't a
    directory of this user's alone: files are removed in it.
    """
    path = _path()
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    try:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
        raise PermissionError(f"{path} is no directory; remove it, or set TMPDIR to another folder") from error
    try:
        found = os.fstat(directory)
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise PermissionError(
                f"{path} is not this user's alone (owner {found.st_uid}, mode {stat.S_IMODE(found.st_mode):04o}); "
                "remove it, or set TMPDIR to another folder"
            )
        yield directory
    finally:
        os.close(directory)


def remove_files(load: str) -> None:
    """Remove a load's lock files of this machine, when its tasks have ended."""
    with suppress(OSError), _directory() as directory:  # the load is done, whatever became of its files
        for name in os.listdir(directory):
            if name.startswith(f"{load}-"):
                os.unlink(name, dir_fd=directory)
