"""What runs in Spark's Python tasks: reading files, and reading chunks from the database.

Each function takes one slice of the work and yields rows; a task holds one file and one chunk at a time.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

import psycopg

from pgcombine.phrasecount import files
from pgcombine.phrasecount.tokens import MAX_PHRASE_BYTES, Document, phrases
from pgcombine.sqlfiles import query

FETCH_ROWS = 32

SCANNED = "n int, seq int, tokens string, content_hash string, document string, problem string, detail string"
ScannedRow = tuple[int, int | None, str | None, str | None, str | None, str | None, str | None]


@dataclass(frozen=True)
class Scan:
    """Where tasks read: ``directory`` is a real path, ``conninfo`` the database with its stored files."""

    conninfo: str
    directory: str
    max_bytes: int

    def files(self, batch: list[tuple[int, str]]) -> Iterator[ScannedRow]:
        """Rows (:data:`SCANNED`) of new and edited files; nothing of a file whose content is stored."""
        with psycopg.connect(self.conninfo) as connection:
            known: dict[str, str] = dict(
                connection.execute(
                    query("phrasecount_known"),
                    {"directory": self.directory, "paths": [path for _, path in batch]},
                ).fetchall()
            )
        for n, path in batch:
            try:
                content = files.read_file(os.path.join(self.directory, path), self.max_bytes)
                content_hash = hashlib.sha256(content).hexdigest()
                if known.get(path) == content_hash:
                    continue
                document = Document(files.decode(content))
            except files.Refused as refused:
                yield _problem(n, refused.problem)
                continue
            del content
            for seq, chunk in enumerate(document.chunks()):
                yield n, seq, chunk, None, None, None, None
            if document.tokens:
                yield n, None, None, content_hash, document.hash(), None, None
            else:
                yield _problem(n, files.Problem(files.EMPTY))

    def documents(self, batch: list[str]) -> Iterator[tuple[str, str]]:
        """(path, document hash) of the files that can be counted; the recount's first look."""
        for path in batch:
            document = self._document(path)
            if document is not None:
                for _ in document.chunks():
                    pass
                if document.tokens:
                    yield path, document.hash()

    def phrases(self, batch: list[tuple[int, str, str]]) -> Iterator[tuple[int, str]]:
        """(document number, phrases one a line) of files (number, path, document hash) read from disk.

        Raises OSError if a file no longer holds that document.
        """
        for number, path, expected in batch:
            document = self._document(path)
            if document is not None:
                for chunk in document.chunks():
                    yield number, _lines(chunk)
            if document is None or document.hash() != expected:
                raise OSError(f"{path} was changed while it was verified: run again")

    def _document(self, path: str) -> Document | None:
        try:
            return Document(files.decode(files.read_file(os.path.join(self.directory, path), self.max_bytes)))
        except files.Refused:
            return None


@dataclass(frozen=True)
class Stored:
    """Chunks that are in the database."""

    conninfo: str

    def changed(self, part: tuple[UUID, int, int]) -> Iterator[tuple[int, int, str]]:
        """(document number, sign, chunk) of documents that a run makes live (1) or dead (-1).

        ``part`` is the run's load, and the first and last number.
        """
        load, low, high = part
        with psycopg.connect(self.conninfo) as connection, connection.cursor("chunks") as cursor:
            cursor.itersize = FETCH_ROWS
            cursor.execute(query("phrasecount_changed_chunks"), {"load": load, "low": low, "high": high})
            yield from cursor

    def phrases(self, batch: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        """(document number, phrases one a line) of stored documents (number, hash)."""
        numbers = {document: number for number, document in batch}
        with psycopg.connect(self.conninfo) as connection, connection.cursor("chunks") as cursor:
            cursor.itersize = FETCH_ROWS
            cursor.execute(query("phrasecount_stored_chunks"), {"documents": list(numbers)})
            for document, chunk in cursor:
                yield numbers[document], _lines(chunk)


def _lines(chunk: str) -> str:
    return "\n".join(phrase for phrase in phrases(chunk) if len(phrase.encode()) <= MAX_PHRASE_BYTES)


def _problem(n: int, problem: files.Problem) -> ScannedRow:
    return n, None, None, None, None, problem.kind, problem.detail
