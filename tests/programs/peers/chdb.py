"""chDB (PyPI ``chdb``), ClickHouse inside a process: an upper bound for appending and merging outside PostgreSQL.

A transaction can't cover chDB and other data, only one process can use chDB's tables, and an update is durable only
with its batch of about 10,000 updates. Batches are written with fsync into the system's temporary directory. The
process writes the same words as other contenders, without clients and protocol. Its processor time counts as the
consumer's.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from pgcombine.database.connect import Connection
from pgcombine.errors import PgCombineError

from .contender import ROOT, WRITES, Consumer, Contender
from .load import Done, Load

_TIMEOUT = 60.0  # seconds to wait for the end of the process


class ChDB(Contender):
    """An ``AggregatingMergeTree`` that gets batches of updates. ``consumer`` runs the process, which does all work."""

    name = "chDB, batches of 10,000"
    summary = "a ceiling outside PostgreSQL: no transactions, one process, an update is durable with its batch only"
    only = WRITES | {"new-keys"}
    unmeasured = frozenset({"log", "server", "clients"})

    def __init__(self) -> None:
        self._process: Consumer | None = None
        self._merged = True
        self._last: dict[str, int] = {}  # the last totals that the process reported

    def missing(self, connection: Connection) -> str | None:
        return None if importlib.util.find_spec("chdb") else "pip install 'pgcombine[peers]'"

    def make(self, connection: Connection) -> None:
        pass  # the process makes the table

    @contextmanager
    def consumer(self, dsn: str) -> Iterator[Consumer]:
        with tempfile.TemporaryDirectory(prefix="peers-chdb-", ignore_cleanup_errors=True) as directory:
            command = [sys.executable, "-m", "tests.programs.peers.chdb_process", dsn, directory]
            with subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT
            ) as process:
                self._process = process
                try:
                    self._answer()
                    yield process
                    self._last = self._ask("totals")
                finally:
                    self._process = None
                    assert process.stdin is not None
                    process.stdin.close()
                    try:
                        process.wait(_TIMEOUT)
                    except subprocess.TimeoutExpired:
                        process.kill()

    def load(self, load: Load) -> Done:
        self._merged = False
        fields = {name: value for name, value in asdict(load).items() if name not in ("dsn", "rate")}
        answer = self._ask({"load": fields})
        committed = [
            (client, load.begin + number)
            for client, done in enumerate(answer["done"], start=load.first)
            for number in range(1, done + 1)
        ]
        return Done(committed, 0, answer["seconds"], 0.0)

    def settled(self, connection: Connection) -> bool:
        if not self._merged:
            self._ask("settle")
            self._merged = True
        return True

    def totals(self, connection: Connection) -> dict[str, int]:
        if self._process is not None:
            self._last = self._ask("totals")
        return self._last

    def _ask(self, request: object) -> Any:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise PgCombineError(f"chDB's process ended with status {self._process.wait(_TIMEOUT)}")
        return json.loads(line)
