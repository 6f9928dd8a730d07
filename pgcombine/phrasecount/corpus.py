"""The corpus of phrasecount: the files of a directory."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pgcombine.errors import ConfigError
from pgcombine.phrasecount import files

MAX_BYTES = 64 * 1024 * 1024
# nanoseconds; some file systems store times in steps of two seconds, so two changes within two seconds may have the
# same time
_SETTLED_NS = 2_000_000_000


@dataclass(frozen=True)
class Corpus:
    """The files below ``root`` to count: the first ``limit`` by path (None: all).

    A file larger than ``max_bytes`` isn't counted. ``root`` comes from :func:`real_directory`. Directories named in
    ``exclude`` aren't entered.
    """

    root: Path
    limit: int | None = None
    max_bytes: int = MAX_BYTES
    exclude: frozenset[str] = frozenset()

    def list(self) -> tuple[list[str], list[tuple[str, files.Problem]]]:
        """Return the paths below ``root``, also those beyond the limit, and the problems."""
        return files.list_files(self.root, self.exclude)

    def signatures(self, paths: Iterable[str]) -> Iterator[bytes | None]:
        """Yield for each file a digest of its size, times, device and inode.

        Yields None for a file that was changed in the last two seconds: if the file changes again, its times may stay
        the same. Also yields None for a file whose times can't be read.
        """
        recent = time.time_ns() - _SETTLED_NS
        for path in paths:
            try:
                found = os.stat(self.root / path)
            except OSError:
                yield None
                continue
            if max(found.st_mtime_ns, found.st_ctime_ns) >= recent:
                yield None
            else:
                parts = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
                yield hashlib.blake2b(repr(parts).encode(), digest_size=16).digest()

    def fingerprint(self) -> str:
        """Return a digest that changes when a file is added, removed or edited, and when a problem appears or ends.

        The digest changes once more when :meth:`signatures` begins to yield a digest of a new or edited file instead of
        None. Until then, a further edit of this file may leave the digest the same.
        """
        paths, problems = self.list()
        whole = hashlib.blake2b(digest_size=16)
        for path, signature in zip(paths, self.signatures(paths), strict=True):
            whole.update(repr((path, signature)).encode())
        for problem in problems:
            whole.update(repr(problem).encode())
        return whole.hexdigest()


def real_directory(directory: Path) -> Path:
    """Return the real path of a directory. The database stores the state of the directory under this path.

    Raises ConfigError if ``directory`` isn't a directory, or if its name isn't UTF-8.
    """
    if not directory.is_dir():
        what = "is not a directory" if directory.exists() else "does not exist"
        raise ConfigError(f"{directory} {what}: name a directory with text files")
    root = directory.resolve()
    try:
        str(root).encode()
    except UnicodeEncodeError:
        raise ConfigError(f"the name of {str(root)!a} is not UTF-8: rename it") from None
    return root
