"""Reading files, storing documents, and counting their phrases. Spark's tasks do this, or the run's own process does.

Each function takes one slice of the work. Errors of the database are psycopg's, and fail the task.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any
from uuid import UUID

from pgcombine.phrasecount import files
from pgcombine.phrasecount.database import Connection, connect, query
from pgcombine.phrasecount.tokens import Document, counted

FETCH_ROWS = 32
_NOTE = ("ns", "content_hashes", "documents", "left_out", "problems", "details")
_BATCH_FILES = 100
_BATCH_CHARACTERS = 1024 * 1024  # approximate number of characters of tokens that are written at once


@dataclass(frozen=True)
class Scan:
    """The reader of the files of ``directory``, a real path.

    ``conninfo`` is the connection string of the database. ``load`` is the id of the run to which the recorded results
    belong.
    """

    conninfo: str
    directory: str
    max_bytes: int
    load: UUID

    def files(self, batch: list[tuple[int, str]], most: float = math.inf) -> int:
        """Read new and edited files, and store their documents. Returns how many files it read.

        After about ``most`` characters of documents the function stops. A file that can't be counted is recorded with
        its problem. A task may run twice: a document is stored once, under the hash of its tokens, and of two records
        of a file the last one counts.
        """
        count = 0
        with closing(connect(self.conninfo)) as connection:
            # safe, since a crash of the server that loses a commit also ends the run
            connection.execute("set synchronous_commit = off")
            found = Found(connection, self.load)
            for n, path in batch:
                if found.characters >= most:
                    break
                count += 1
                try:
                    content = files.read_file(os.path.join(self.directory, path), self.max_bytes)
                    content_hash = hashlib.sha256(content)
                    document = Document(files.decode(content))
                except files.Refused as refused:
                    found.problem(n, refused.problem)
                    continue
                del content
                found.document(n, content_hash.digest(), document)
            found.write()
        return count

    def read(self, batch: list[tuple[int, str]]) -> Iterator[tuple[int, Counter[str]]]:
        """Call :meth:`files`. There is nothing to count yet."""
        self.files(batch)
        return iter(())

    def documents(self, batch: list[str]) -> Iterator[tuple[str, str]]:
        """Yield (path, document hash) of the files that can be counted. This is the first step of a recount."""
        for path in batch:
            document = self._document(path)
            if document is not None:
                for _ in document.chunks():
                    pass
                if document.tokens:
                    yield path, document.hash()

    def counted(self, batch: list[tuple[str, str]]) -> Iterator[tuple[int, Counter[str]]]:
        """Yield 1 and the phrases of the files in ``batch`` (path, document hash).

        Raises OSError if a file no longer contains the document of this hash.
        """
        for path, expected in batch:
            document = self._document(path)
            chunks = [] if document is None else list(document.chunks())
            if document is None or document.hash() != expected:
                raise OSError(f"{path} was changed while it was verified: run again")
            for found in counted(chunks):
                yield 1, found

    def _document(self, path: str) -> Document | None:
        try:
            return Document(files.decode(files.read_file(os.path.join(self.directory, path), self.max_bytes)))
        except files.Refused:
            return None


@dataclass(frozen=True)
class Stored:
    """The reader of chunks that are stored in the database."""

    conninfo: str

    def changed(self, load: UUID, positions: list[int]) -> Iterator[tuple[int, Counter[str]]]:
        """Yield the sign and the phrases of documents that a run adds to the counts (1) or removes from them (-1)."""
        return self._counted("changed_chunks", {"load": load, "positions": positions})

    def counted(self, documents: list[str]) -> Iterator[tuple[int, Counter[str]]]:
        """Yield 1 and the phrases of the documents (hashes in hex)."""
        return self._counted("stored_chunks", {"documents": documents})

    def _counted(self, name: str, parameters: dict[str, Any]) -> Iterator[tuple[int, Counter[str]]]:
        with (
            closing(connect(self.conninfo, autocommit=False)) as connection,
            connection.cursor("chunks") as cursor,
        ):
            cursor.itersize = FETCH_ROWS
            cursor.execute(query(name), parameters)
            for (_, sign), rows in groupby(cursor, itemgetter(0, 1)):
                for found in counted([tokens for *_, tokens in rows]):
                    yield sign, found


@dataclass
class Found:
    """The results of reading files, written in batches."""

    connection: Connection
    load: UUID
    characters: int = 0
    _notes: list[tuple[int, bytes | None, bytes | None, int, str | None, str | None]] = field(default_factory=list)
    _chunks: dict[bytes, list[str]] = field(default_factory=dict)
    _written: int = 0

    def problem(self, n: int, problem: files.Problem) -> None:
        self._note(n, None, None, 0, problem.kind, problem.detail)

    def document(self, n: int, content_hash: bytes, document: Document) -> None:
        chunks = list(document.chunks())
        if not document.tokens:
            self.problem(n, files.Problem(files.EMPTY))
            return
        name = bytes.fromhex(document.hash())
        self._chunks[name] = chunks
        self.characters += sum(map(len, chunks))
        self._note(n, content_hash, name, document.left_out, None, None)

    def write(self) -> None:
        """Write the results that aren't written yet, in one transaction."""
        if not self._notes:
            return
        chunks = sorted(self._chunks.items())
        rows = [(owner, seq, one) for owner, (_, many) in enumerate(chunks, 1) for seq, one in enumerate(many)]
        with self.connection.transaction():
            if rows:
                self.connection.execute(
                    "select phrasecount.keep(%b::bytea[], %s::int[], %s::int[], %s::text[])",
                    ([name for name, _ in chunks], *map(list, zip(*rows, strict=True))),
                )
            found = dict(zip(_NOTE, map(list, zip(*self._notes, strict=True)), strict=True))
            self.connection.execute(query("note"), {"load": self.load, **found})
        self._notes, self._chunks, self._written = [], {}, self.characters

    def _note(self, *row: Any) -> None:
        self._notes.append(row)
        if len(self._notes) >= _BATCH_FILES or self.characters - self._written >= _BATCH_CHARACTERS:
            self.write()
