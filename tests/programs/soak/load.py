"""The writers, and the totals that follow from their writes.

A transaction on the queue ``plain`` derives its words from a seed, and also inserts the seed into a table. So the table
has the seeds of all committed transactions, even of those whose commit got no answer. A writer repeats a failed
write to ``wc`` until the write is acknowledged, with the token of an error that leaves the outcome unknown.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import psycopg
from support.clusters import Cluster, dsns

from pgcombine import ReplicatedQueue
from pgcombine.errors import IndeterminateError, PgCombineError

from .installation import connected

KEYS = 50_000
WORDS = 20  # in a transaction
_GAP = 0.04  # seconds between the transactions of a producer
_REPLICATED_WORDS, _REPLICATED_GAP = 5, 0.1


def words(seed: int) -> list[str]:
    """Return the words of the transaction with this seed. A negative seed is that of a probe, which has one word."""
    if seed < 0:
        return [f"probe{-seed}"]
    chance = random.Random(seed)
    return [f"w{int(KEYS * chance.random() ** 4)}" for _ in range(WORDS)]


def write(connection: psycopg.Connection, seed: int) -> None:
    chosen = words(seed)
    with connection.transaction():
        connection.execute("select pgcombine.plain_enqueue(%s, %s)", (chosen, [1] * len(chosen)))
        connection.execute("insert into public.written values (%s)", (seed,))


@dataclass
class Load:
    """The writers, and the counts of their work so far."""

    servers: Mapping[str, Cluster]
    transactions: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    replicated: Counter[str] = field(default_factory=Counter)  # the expected totals of wc
    writes: int = 0

    def produce(self, over: threading.Event) -> None:
        """Write to ``plain`` until ``over`` is set. After an error of psycopg, connect again and go on."""
        chance = random.Random()
        while not over.is_set():
            try:
                with connected(self.servers["a"], over) as connection:
                    while not over.wait(_GAP):
                        write(connection, chance.getrandbits(60))
                        self.transactions += 1
            except psycopg.Error as error:
                self.errors[type(error).__name__] += 1

    def replicate(self, over: threading.Event) -> None:
        """Write to ``wc`` on both servers until ``over`` is set."""
        chance = random.Random()
        with ReplicatedQueue(dsns(self.servers), "wc", timeout=2.0) as queue:
            while not over.wait(_REPLICATED_GAP):
                chosen = [f"w{chance.randrange(2000)}" for _ in range(_REPLICATED_WORDS)]
                self._acknowledged(queue, [{"word": word, "n": 1} for word in chosen])
                self.replicated.update(chosen)
                self.writes += 1

    def _acknowledged(self, queue: ReplicatedQueue, rows: list[dict[str, object]]) -> None:
        token = None
        while True:
            try:
                queue.enqueue(rows, token=token)
                return
            except PgCombineError as error:
                token = error.token if isinstance(error, IndeterminateError) else token
                self.errors[type(error).__name__] += 1
                time.sleep(0.2)

    def plain(self) -> Counter[str]:
        """Return the totals that ``plain`` must have, from the committed seeds."""
        found: Counter[str] = Counter()
        with self.servers["a"].connect() as connection:
            for (seed,) in connection.execute("select seed from public.written"):
                found.update(words(seed))
        return found
