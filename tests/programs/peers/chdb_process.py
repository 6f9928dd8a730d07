"""The process that runs chDB: ``python -m tests.programs.peers.chdb_process DSN DIRECTORY``.

The process reads the sample of words from the database ``DSN``, makes its table in ``DIRECTORY``, and prints
``"ready"``. Then it answers each line of its standard input, a request in JSON, by a line of JSON. The process ends
when its standard input ends.

- ``{"load": {…}}`` has the fields of a load and of its work. The process writes the words that the clients of pgbench
  would write, one transaction of each client in turn. The answer has the number of transactions of each client, and the
  seconds.
- ``"settle"`` merges all parts of the table into one part; the answer comes afterwards.
- ``"totals"`` is answered with the totals by word.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from chdb.session import Session

from pgcombine.database.connect import connect

from .load import Work, words

BATCH = 10_000  # the least number of updates in a batch, except in the last batch of a load
_SQL = Path(__file__).with_name("sql") / "chdb.sql"


class Store:
    """chDB's table of totals. ``sample`` has the words in order."""

    def __init__(self, directory: str, sample: list[str]) -> None:
        self._sample = sample
        self._session = Session(directory)
        for statement in _SQL.read_text().split(";\n"):
            if statement.strip():
                self._session.query(statement)

    def load(
        self,
        work: Work,
        *,
        clients: int,
        seconds: float,
        transactions: int | None,
        first: int,
        begin: int,
    ) -> dict[str, Any]:
        """Write until ``seconds`` are over, or if ``transactions`` is given, that many transactions of each client."""
        done = [0] * clients
        batch: list[str] = []
        began = time.monotonic()
        for number in itertools.count(1) if transactions is None else range(1, transactions + 1):
            for client in range(clients):
                batch += words(work, self._sample, client + first, begin + number)
                done[client] = number
                if len(batch) >= BATCH:
                    self._insert(batch)
                    batch = []
            if transactions is None and time.monotonic() - began >= seconds:
                break
        if batch:
            self._insert(batch)
        return {"done": done, "seconds": time.monotonic() - began}

    def _insert(self, batch: list[str]) -> None:
        rows = "\t1\n".join(batch)
        self._session.query(f"insert into bench.total (word, n) format TSV {rows}\t1\n")

    def settle(self) -> None:
        self._session.query("optimize table bench.total final")

    def totals(self) -> dict[str, int]:
        found = self._session.query("select word, sum(n) from bench.total group by word", "TSV").data()
        return {word: int(n) for word, n in (line.split("\t") for line in found.splitlines())}


def main() -> None:
    dsn, directory = sys.argv[1:]
    with closing(connect(dsn, name="peers consumer")) as connection:
        sample = [str(word) for (word,) in connection.execute("select word from bench.zipf order by i").fetchall()]
    store = Store(directory, sample)
    _answer("ready")
    for line in sys.stdin:
        request = json.loads(line)
        if request == "settle":
            store.settle()
            _answer("settled")
        elif request == "totals":
            _answer(store.totals())
        else:
            load = request["load"]
            _answer(store.load(Work(**load.pop("work")), **load))


def _answer(answer: object) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
