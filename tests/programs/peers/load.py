"""A load (what clients write, and for how long), and the expected totals, computed without the server.

Transaction j of client c writes the same words for each contender. ``pgbench_load`` raises PgCombineError if pgbench
fails.
"""

from __future__ import annotations

import hashlib
import resource
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

from pgcombine.bench import pgbench
from pgcombine.bench.figures import KEYS
from pgcombine.bench.scratch import SAMPLE

STRIDE, APART = 7919, 62_501  # distances in the sample: from transaction to transaction, from client to client
_NEW = 1_000_000_000  # greater than each transaction's number, so that the new keys of two clients differ
_NEXT = "\\set j :j + 1\n"
_PLACE = f"\\set i (:j * {STRIDE} + (:client_id + :first) * {APART}) % ({SAMPLE} - :k)\n"
_NEW_PLACE = f"\\set i ((:client_id + :first) * {_NEW} + :j) * :k\n"
_NEW_WORDS = (
    "from (select md5(number::text) as word from generate_series(:i::bigint, :i::bigint + :k::int - 1) number) s"
)
HOT = "hot"
_TIMEOUT = 120.0  # seconds by which a load may exceed ``seconds``, which is 0 if ``transactions`` is given


@dataclass(frozen=True)
class Work:
    """The writes of a transaction: ``updates`` words of the sample, ``updates`` new words, or the hot key once.

    ``open_seconds`` is the time of other work after the write in the same transaction.
    """

    updates: int = 1
    kind: str = "sample"  # or "new", "hot"
    open_seconds: float = 0.0

    def script(self, write: Callable[[str], str], one: Callable[[str], str], change: Callable[[], str]) -> str:
        if self.kind == "hot":
            text = _NEXT, one(f"'{HOT}'") + ";\n"
        elif self.kind == "new":
            text = _NEXT + _NEW_PLACE, write(_NEW_WORDS)
        else:
            text = _NEXT + _PLACE, write(KEYS)
        settings, statements = text[0], text[1] + change()
        if not self.open_seconds:
            return settings + statements
        return f"{settings}begin;\n{statements}select pg_sleep({self.open_seconds});\ncommit;\n"


@dataclass(frozen=True)
class Load:
    """``clients`` clients repeat a work for ``seconds`` seconds, or each client repeats it ``transactions`` times.

    The numbers of the clients begin with ``first``, and the numbers of each client's transactions with ``begin`` + 1.
    ``rate`` bounds the transactions a second of all clients together.
    """

    dsn: str
    work: Work
    clients: int
    seconds: float = 0.0
    transactions: int | None = None
    rate: float | None = None
    first: int = 0
    begin: int = 0


@dataclass(frozen=True)
class Done:
    """The result of a load."""

    committed: list[
        tuple[int, int]
    ]  # committed transactions: pairs of the client's number and the transaction's number
    failed: int  # the number of failed transactions
    seconds: float
    processor: float  # processor seconds of the clients

    @property
    def rate(self) -> float:
        """The number of committed transactions a second."""
        return len(self.committed) / self.seconds


def pgbench_load(load: Load, write: Callable[[str], str], one: Callable[[str], str], change: Callable[[], str]) -> Done:
    with tempfile.TemporaryDirectory(prefix="peers-log-") as directory:
        log = Path(directory, "log")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        process = pgbench.start(
            load.dsn,
            load.work.script(write, one, change),
            # with fewer threads, a client that waits for a lock could block the client that holds the lock
            *("-j", str(load.clients), "-l", "--log-prefix", str(log)),
            *(() if load.transactions is None else ("-t", str(load.transactions))),
            *(() if load.rate is None else ("-R", f"{load.rate:.3f}")),
            clients=load.clients,
            seconds=load.seconds if load.transactions is None else None,
            k=load.work.updates,
            j=load.begin,
            first=load.first,
        )
        done = pgbench.finish(process, load.seconds + _TIMEOUT)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        committed = [(client + load.first, number + load.begin) for client, number in _committed(log)]
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Done(committed, done.failed, done.seconds, used)


def _committed(log: Path) -> Iterator[tuple[int, int]]:
    """Yield a pair for each committed transaction: the client's number from 0, and its transaction's number from 1."""
    for file in log.parent.glob(f"{log.name}.*"):
        with file.open() as lines:
            for line in lines:
                client, number, outcome = line.split(" ", 3)[:3]
                if outcome not in ("failed", "skipped"):
                    yield int(client), int(number)


def words(work: Work, sample: list[str], client: int, j: int) -> list[str]:
    """Return the words that transaction ``j`` of a client writes."""
    if work.kind == "hot":
        return [HOT]
    if work.kind == "new":
        i = (client * _NEW + j) * work.updates
        return [hashlib.md5(b"%d" % number).hexdigest() for number in range(i, i + work.updates)]
    i = _place(work, client, j)
    return sample[i : i + work.updates]


def _place(work: Work, client: int, j: int) -> int:
    return (j * STRIDE + client * APART) % (SAMPLE - work.updates)


@dataclass
class Ledger:
    """The writes of a turn, and the totals that follow from them. ``words`` is the sample in order."""

    words: list[str]
    # for each place of the sample: how many runs of words begin there, minus how many ended just before
    _places: list[int] = field(default_factory=lambda: [0] * (SAMPLE + 1))
    _others: Counter[str] = field(default_factory=Counter)

    def enter(self, work: Work, committed: Iterable[tuple[int, int]]) -> None:
        """Enter committed transactions, pairs of client and number."""
        for client, j in committed:
            if work.kind == "sample":
                i = _place(work, client, j)
                self._places[i] += 1
                self._places[i + work.updates] -= 1
            else:
                self._others.update(words(work, self.words, client, j))

    def enter_one(self, word: str) -> None:
        self._others[word] += 1

    def totals(self) -> dict[str, int]:
        found = Counter(self._others)
        for word, times in zip(self.words, accumulate(self._places), strict=False):
            if times:
                found[word] += times
        return found


def differences(expected: dict[str, int], found: dict[str, int]) -> str | None:
    """Return one line about the differences between the totals and the expected ones; None if there are none."""
    if found == expected:
        return None
    wrong = sorted(word for word in expected.keys() | found.keys() if expected.get(word) != found.get(word))
    first = wrong[0]
    return (
        f"{len(wrong):,} keys have wrong totals; {first}: {found.get(first, 0):,} instead of "
        f"{expected.get(first, 0):,}; all: {sum(found.values()):,} instead of {sum(expected.values()):,}"
    )
