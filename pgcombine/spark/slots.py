"""A limit on the connections of a load, over all executors.

A slot is an advisory lock in the database. A task first locks one of ``limit`` files of its machine, so that no more
tasks of the machine even try. Then it connects and tries the slots. If tasks of other machines have all slots, it
disconnects and tries again after a moment. One task of a machine at a time does this, so a waiting machine connects
about once a second.
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

from pgcombine.database.connect import Connection, closed_on_error, connect, one

NAME = "pgcombine spark"  # application_name
_PAUSE, _LONGEST = 0.1, 1.0  # seconds between two tries, about; the pause grows
_KEPT = 86_400.0  # seconds after which a lock file that its load left behind is removed


@contextmanager
def connected(conninfo: str, load: str, limit: int) -> Iterator[Connection]:
    """Yield a connection that counts among the ``limit`` connections of the writers of ``load``. 0 means no limit.

    The lock belongs to the session. So behind a pooler in transaction mode the limit must be set in the pooler.
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
            with closed_on_error(connection):
                if _take_slot(connection, load, limit):
                    return connection
            connection.close()
            time.sleep(random.uniform(0.5, 1.5) * pause)
            pause = min(1.5 * pause, _LONGEST)


def _take_slot(connection: Connection, load: str, limit: int) -> bool:
    return bool(one(connection, "select pgcombine_internal.take_slot(%s, %s)", load, limit)[0])


@contextmanager
def _file_slot(load: str, limit: int) -> Iterator[None]:
    """Lock one of ``limit`` files of this machine. The lock ends with the process at the latest."""
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
    """Open a lock file. Old lock files, of loads that ended on other machines, are removed."""
    with _directory() as directory:
        for other in os.listdir(directory):
            with suppress(FileNotFoundError):
                if time.time() - os.stat(other, dir_fd=directory, follow_symlinks=False).st_mtime > _KEPT:
                    os.unlink(other, dir_fd=directory)  # if its load still writes, the slots in the database hold
        file = os.open(name, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=directory)
    try:
        yield file
    finally:
        os.close(file)


def _path() -> Path:
    return Path(tempfile.gettempdir()) / f"pgcombine-slots-{os.geteuid()}"


@contextmanager
def _directory() -> Iterator[int]:
    """Open the directory of the lock files.

    Anybody may write to the temporary folder, and files are removed in this directory. So PermissionError is raised if
    its name isn't a directory that only this user can use.
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
    with suppress(OSError), _directory() as directory:  # the load is done, whether its files are removed or not
        for name in os.listdir(directory):
            if name.startswith(f"{load}-"):
                os.unlink(name, dir_fd=directory)
