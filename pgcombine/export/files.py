"""Export into files of JSON lines, one file a batch.

A file appears in the directory under its name only when it is complete and on disk (written under another name, fsync,
renamed, fsync of the directory): whoever reads ``*.jsonl`` never sees half a batch. The name holds the least and the
highest sequence number in it; a batch that is delivered again with the same ones replaces its file. A disk that is full
and a directory that isn't there are DestinationDown. What a killed worker leaves, ``*.part``, may be removed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

from pgcombine.errors import DestinationDown
from pgcombine.export.entries import Entry

FILE_MODE = 0o600


class FileExporter:
    """Writes files ``<export>.<highest seq>.<least seq>.jsonl`` into a directory, which must be there.

    ``mode`` are the files' permissions: by default nobody else reads them.
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
                os.fchmod(descriptor, self._mode)  # whatever the umask is
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
            raise DestinationDown(f"{error.strerror or error}: {part.parent}") from error

    def close(self) -> None:
        """Nothing is open between batches."""
