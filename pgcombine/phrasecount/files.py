"""Lists and reads the files of a directory.

Regular files are counted, even hidden ones, and so are links to regular files. Hidden directories, such as ``.git``,
and linked directories aren't entered. A file that can't be counted has a :class:`Problem`, and is treated as absent.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

MAX_PATH_BYTES = 2600  # a path is in an index key, whose size is limited

NOT_A_FILE = "link that can't be followed"
NAME = "name is not UTF-8"
LONG_PATH = f"path is longer than {MAX_PATH_BYTES} bytes"
DIRECTORY = "unreadable directory"
UNREADABLE = "unreadable"
VANISHED = "vanished while it was read"
LARGE = "too large"
ENCODING = "not UTF-8"
EMPTY = "no tokens"


@dataclass(frozen=True)
class Problem:
    """The reason why a file or a directory isn't counted. ``kind`` is one of the texts above."""

    kind: str
    detail: str = ""


class Refused(Exception):
    """A file can't be counted. ``problem`` is the reason."""

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(kind)
        self.problem = Problem(kind, detail)


def list_files(root: Path, exclude: Collection[str] = ()) -> tuple[list[str], list[tuple[str, Problem]]]:
    """Return the paths of the files below ``root``, relative to it and sorted, and the problems, sorted by path.

    Hidden directories, linked ones, and those named in ``exclude`` aren't entered.
    """
    paths: list[str] = []
    problems: list[tuple[str, Problem]] = []
    for path, problem in _walk(os.fspath(root), exclude):
        if problem is None:
            paths.append(path)
        else:
            problems.append((path, problem))
    return sorted(paths), sorted(problems, key=lambda item: item[0])


def read_file(path: str, max_bytes: int) -> bytes:
    """Return the content of a regular file of at most ``max_bytes``. Raises Refused."""
    try:
        # opening a named pipe that has replaced the file must not block
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Refused(VANISHED)
            content = file.read(max_bytes + 1) if status.st_size <= max_bytes else None
    except FileNotFoundError:
        raise Refused(VANISHED) from None
    except OSError as error:
        raise Refused(UNREADABLE, error.strerror or "") from None
    if content is None or len(content) > max_bytes:
        raise Refused(LARGE, f"{status.st_size:,} bytes, --max-bytes is {max_bytes:,}")
    return content


def decode(content: bytes) -> str:
    """Return the text of a file. Raises Refused."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(ENCODING, f"at byte {error.start:,}") from None


def _walk(root: str, exclude: Collection[str]) -> Iterator[tuple[str, Problem | None]]:
    folders = [""]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(os.path.join(root, folder)) as entries:
                for entry in entries:
                    path = os.path.join(folder, entry.name)
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name not in exclude and not entry.name.startswith("."):
                            folders.append(path)
                    elif (problem := _check(entry, path)) is not None or _is_file(entry):
                        yield path, problem
        except OSError as error:
            yield folder or ".", Problem(DIRECTORY, error.strerror or "")


def _check(entry: os.DirEntry[str], path: str) -> Problem | None:
    try:
        encoded = path.encode()
    except UnicodeEncodeError:
        return Problem(NAME)
    if len(encoded) > MAX_PATH_BYTES:
        return Problem(LONG_PATH)
    try:
        os.stat(entry.path)
    except FileNotFoundError:
        return Problem(NOT_A_FILE) if entry.is_symlink() else Problem(VANISHED)
    except OSError as error:  # for example a loop of links, or a link into a closed directory
        return Problem(NOT_A_FILE if entry.is_symlink() else UNREADABLE, error.strerror or "")
    return None


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Whether the entry is a regular file or a link to one. Pipes, sockets, devices and linked directories aren't."""
    try:
        return entry.is_file()
    except OSError:
        return False
