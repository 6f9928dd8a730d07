"""Comparing the table of the exporter ``postgres`` with the queue's values, and making workers deliver keys again.

Both sides are read in pages of keys, each page in a short transaction, while passes and deliveries go on. So a key may
seem to differ only because its latest change isn't delivered yet. Keys that seem to differ are compared again. A key
really differs if it differs again, its sequence number was the same in both reads of the table, and at some moment
between the reads no entry of the key waited. If the queue has no value of the key, a sweep that is still to be done
(:mod:`pgcombine.export.delivery`) counts like a waiting entry. A key for which the table is ahead really differs even
while an entry waits. Keys for which this isn't decided in time are *moving*.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from typing import Any, NamedTuple, TypeVar

import psycopg

from pgcombine.database import sqlfiles
from pgcombine.database.connect import Connection, one
from pgcombine.errors import DestinationError, ExportError, translated
from pgcombine.export.postgres import PostgresExporter, registered, statements
from pgcombine.export.queue import exports

T = TypeVar("T")

WAIT_SECONDS = 5.0
_PAUSE_SECONDS = 0.1
_PORTION = 1000  # number of keys; the pages of the queries that export_verify returns have the same size
_MOST_MOVING = 50_000  # if more keys are undecided after another comparison, they are *moving*


class Difference(NamedTuple):
    """A key, as a JSON object of its columns, and what is wrong with its row in the table.

    ``problem`` is ``missing``, ``surplus``, ``other`` (another value), ``ahead`` (its sequence number is beyond all
    that this server has drawn) or ``moving`` (it may still become equal).
    """

    key: str
    problem: str


class _Found(NamedTuple):
    """A key's row that differs from the key's value. ``coming`` says whether an entry or a sweep may yet correct it."""

    problem: str
    seq: int | None
    coming: bool


class _Comparison:
    """A comparison, with connections to the queue's database and to the destination's."""

    def __init__(self, connection: Connection, export: str, target: str | None, *, make: bool) -> None:
        self._connection = connection
        self._export = export
        self._page, self._lookup, self._target_page, self._compare = one(
            connection, "select * from pgcombine_internal.export_verify(%s)", export
        )
        (found,) = exports(connection, export)
        found_statements = statements(connection, export)
        if make:
            found_statements = found_statements._replace(begun=False)
        self._exporter = PostgresExporter(target or registered(export, found["target"]), found_statements)
        self._drawn: int | None = None
        self._read_owner()
        self.close = self._exporter.close

    def make(self) -> None:
        """Connect to the destination, which makes a missing table if the comparison may."""
        self._exporter.fetch("select")

    def candidates(self) -> Iterator[dict[str, int | None]]:
        """Yield the keys that seem to differ, in pages: each key with its sequence number in the table, or None."""
        for there in (True, False):
            after = None
            while keys := self._keys(after, there):
                after = keys[-1]
                # The first round goes through the keys of the table, and the second through those of the queue. The
                # second round yields the keys that the table lacks, and the first yields the other differences.
                found = self._differing(keys, coming=False).items()
                yield {key: row.seq for key, row in found if (row.problem == "missing") != there}

    def compare_again(self, moving: dict[str, int | None]) -> Iterator[Difference]:
        """Compare the keys in ``moving`` again. Yield those that really differ. Undecided keys stay in ``moving``."""
        for keys in _portions(list(moving)):
            found = self._differing(keys, coming=True)
            for key in keys:
                before = moving.pop(key)
                if row := found.get(key):
                    if row.seq == before and (not row.coming or row.problem == "ahead"):
                        yield Difference(key, row.problem)
                    else:
                        moving[key] = row.seq

    def _keys(self, after: str | None, there: bool) -> list[str]:
        if there:
            return [key for (key,) in self._exporter.fetch(self._target_page, after, self._drawn)]
        return [key for (key,) in self._here(self._page, after)]

    def _differing(self, keys: list[str], *, coming: bool) -> dict[str, _Found]:
        looked = self._here(self._lookup, _array(keys), coming)
        rows = self._exporter.fetch(self._compare, _array(row for _, row, _ in looked), self._drawn)
        return {looked[number - 1][0]: _Found(problem, seq, looked[number - 1][2]) for number, problem, seq in rows}

    def _here(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        with self._connection.transaction():
            self._connection.execute("select pgcombine_internal.portable_text()")
            self._read_owner()
            return psycopg.RawCursor(self._connection).execute(statement.encode(), parameters).fetchall()

    def _read_owner(self) -> None:
        owner, epoch, self._drawn, _ = one(self._connection, sqlfiles.query("export_owner"), self._export)
        self._exporter.owned(owner, epoch, self._drawn)


def differences(
    connection: Connection, export: str, *, target: str | None = None, timeout: float = WAIT_SECONDS, make: bool = False
) -> Iterator[Difference]:
    """Compare the destination of an export of the exporter ``postgres`` with the queue's values. Yields differences.

    ``connection`` is in autocommit. ``target`` is as for ExportWorker. At the end, undecided keys are compared again
    for ``timeout`` seconds. Then those that are still undecided are ``moving``. With ``make``, a missing table is
    created. Raises ExportNotFoundError, InvalidDefinitionError for another exporter, ReplicaError if another server
    delivers the export, NotGrantedError, and ExportError if the destination fails.
    """
    try:
        with translated(), closing(_Comparison(connection, export, target, make=make)) as comparison:
            moving: dict[str, int | None] = {}
            full = _PORTION
            for candidates in comparison.candidates():
                moving |= candidates
                if len(moving) >= full:
                    yield from comparison.compare_again(moving)
                    if len(moving) > _MOST_MOVING:
                        yield from _given_up(moving)
                    full = 2 * len(moving) + _PORTION
            until = time.monotonic() + timeout
            while moving:
                yield from comparison.compare_again(moving)
                if time.monotonic() > until:
                    yield from _given_up(moving)
                elif moving:
                    time.sleep(_PAUSE_SECONDS)
    except DestinationError as error:
        raise ExportError(f'the destination of export "{export}" can\'t be compared: {error}') from error


def resync(connection: Connection, export: str, *, every: bool = False, target: str | None = None) -> tuple[int, int]:
    """Make workers deliver again the keys that differ.

    ``connection`` and ``target`` are as for :func:`differences`. With ``every``, or for another exporter than
    ``postgres``, workers deliver all keys that have a value. A missing table is created; with ``every``, if the
    destination can be reached. Each key gets an entry with a new sequence number. The entries are written in several
    transactions. After an error, call the function again. Workers then try a destination that is down at once. Returns
    the number of new entries, and the number of keys that are *moving*, which get no new entry. Raises the errors of
    :func:`differences`, and ExportError if the destination is ahead of this server.
    """
    with translated():
        (found,) = exports(connection, export)

        def send(keys: str | None) -> int:
            return int(one(connection, "select pgcombine_internal.export_resync(%s, %s)", export, keys)[0])

        sent = moving = 0
        if every or found["exporter"] != "postgres":
            sent = send(None)
            if found["exporter"] == "postgres":  # a destination that is down needs no table yet
                with suppress(DestinationError), closing(_Comparison(connection, export, target, make=True)) as there:
                    there.make()
        else:
            for portion in _portions(differences(connection, export, target=target, make=True)):
                if ahead := [key for key, problem in portion if problem == "ahead"]:
                    raise ExportError(
                        f'the destination of export "{export}" is ahead of this server, for example at {ahead[0]}: it '
                        f"would ignore new entries of these keys (pgcombine export own {export} begins a new epoch)"
                    )
                if keys := [key for key, problem in portion if problem != "moving"]:
                    sent += send(_array(keys))
                moving += len(portion) - len(keys)
        if found["state"] in ("suspect", "down"):  # a missing table was the reason, perhaps
            connection.execute("select pgcombine.resume_export(%s)", (export,))
    return sent, moving


def _given_up(moving: dict[str, int | None]) -> Iterator[Difference]:
    while moving:
        yield Difference(moving.popitem()[0], "moving")


def _portions(items: Iterable[T]) -> Iterator[list[T]]:
    found = iter(items)
    while portion := list(itertools.islice(found, _PORTION)):
        yield portion


def _array(rows: Iterable[str]) -> str:
    return f"[{','.join(rows)}]"
