"""Export into files of JSON lines, one file for each batch.

A file is written and synced under another name, then renamed, and then the directory is synced. So a reader of
``*.jsonl`` doesn't see half a batch. The name has the highest and the lowest sequence number of the batch. If a batch
is delivered again with the same two numbers, the new file replaces the old one. An error of the file system, for
example a full disk, raises DestinationDownError. A killed worker may leave files ``*.part``, which you can remove.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

from pgcombine.errors import DestinationDownError
from pgcombine.export.entries import Entry

FILE_MODE = 0o600


class FileExporter:
    """Writes files ``<export>.<highest seq>.<lowest seq>.jsonl`` into a directory, which must exist.

    ``mode`` is the files' permissions. By default only the user who runs the worker may read the files.
    """

    def __init__(self, directory: str | Path, export: str, *, mode: int = FILE_MODE) -> None:
        self._mode = mode
        self._directory = Path(directory)
        self._export = export

    def deliver(self, entries: Sequence[Entry]) -> None:
        """Write one file."""
        numbers = [entry.seq for entry in entries]
        name = f"{self._export}.{max(numbers):020d}.{min(numbers):020d}.jsonl"
        part = self._directory / f"{name}.{uuid4().hex}.part"
        try:
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "w", encoding="utf-8") as file:
                os.fchmod(descriptor, self._mode)  # regardless of the umask
                file.writelines(f"{entry.json}\n" for entry in entries)
                file.flush()
                os.fsync(file.fileno())
            part.replace(self._directory / name)
            directory = os.open(self._directory, os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise DestinationDownError(f"{error.strerror or error}: {part.parent}") from error

    def close(self) -> None:
        """Do nothing, since no file is open between batches."""
