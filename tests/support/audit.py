"""The audit of a queue: what was committed, what a queue reports to observers, and whether both agree with its values.

``audit`` adds an SQL observer to a queue, a word count (``word``, ``n``) as ``make_queue`` makes it. In the transaction
of each pass, the observer appends all changes to a table. In an unbroken chain, each change of a word has as its old
value the new value of the word's previous change. Tests in which sessions, faults and checks run at once use ``Run``
for their threads and counts, and ``Ledger`` for the writes of these threads.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import psycopg
from psycopg import sql

from support.queues import values


class Change(NamedTuple):
    word: str
    old: int | None
    new: int | None


def audit(conn: psycopg.Connection, queue: str = "wc") -> None:
    table = sql.Identifier("public", f"{queue}_audit")
    conn.execute(sql.SQL("create table {} (id bigserial, word text, old bigint, new bigint)").format(table))
    statement = sql.SQL("insert into {} (word, old, new) select word, old_n, new_n from changes").format(table)
    conn.execute("select pgcombine.add_observer(%s, 'audit', %s)", (queue, statement.as_string(conn)))


def audited(conn: psycopg.Connection, queue: str = "wc") -> list[Change]:
    """All changes so far, in the order in which they were appended."""
    table = sql.Identifier("public", f"{queue}_audit")
    return [
        Change(*row)
        for row in conn.execute(sql.SQL("select word, old, new from {} order by id").format(table)).fetchall()
    ]


def follow(changes: Iterable[Change]) -> dict[str, int]:
    """The values after all changes. Raises AssertionError if a chain breaks, or if an old value equals the new one."""
    state: dict[str, int] = {}
    for change in changes:
        assert change.old == state.get(change.word), f"{change} follows {state.get(change.word)}"
        assert change.old != change.new, f"{change} is no change"
        if change.new is None:
            del state[change.word]
        else:
            state[change.word] = change.new
    return state


def differences(what: str, expected: Mapping[Any, Any], found: Mapping[Any, Any]) -> Iterator[str]:
    """Yield a line unless ``found`` has exactly the totals in ``expected`` that aren't 0."""
    right = {key: n for key, n in expected.items() if n}
    keys = sorted(key for key in right.keys() | found.keys() if right.get(key) != found.get(key))
    if keys:
        some = {key: (right.get(key), found.get(key)) for key in keys[:5]}
        yield f"{what}: {len(keys)} keys differ (expected, found), such as {some}"


def broken(what: str, changes: Iterable[Change], expected: Mapping[str, int]) -> Iterator[str]:
    """Yield a line if the changes form no unbroken chains that lead to ``expected``."""
    try:
        yield from differences(f"the chains of {what}", expected, follow(changes))
    except AssertionError as error:
        yield f"a chain of {what} breaks: {error}"


def problems(conn: psycopg.Connection, expected: Mapping[str, int], queue: str = "wc") -> Iterator[str]:
    """Yield what is wrong with an audited queue without pending updates: its values, chains, what ``verify`` finds."""
    yield from differences(f"values of {queue}", expected, values(conn, queue))
    yield from broken(queue, audited(conn, queue), expected)
    for (problem,) in conn.execute("select problem from pgcombine.verify(%s)", (queue,)).fetchall():
        yield f"{queue}: {problem}"


def check(conn: psycopg.Connection, expected: Mapping[str, int], queue: str = "wc") -> None:
    """Check that nothing is wrong with an audited queue without pending updates, see ``problems``."""
    assert list(problems(conn, expected, queue)) == []


class Ledger:
    """The sums of the acknowledged updates by word, and the outcome of writes with a number, in several threads.

    A write that is neither acknowledged nor refused has an unknown outcome.
    """

    def __init__(self) -> None:
        self.sums: Counter[str] = Counter()
        self.acknowledged: set[int] = set()
        self.refused: set[int] = set()
        self._lock = threading.Lock()

    def acknowledge(self, updates: Iterable[tuple[str, int]], write: int | None = None) -> None:
        with self._lock:
            for word, n in updates:
                self.sums[word] += n
            if write is not None:
                self.acknowledged.add(write)

    def refuse(self, write: int) -> None:
        with self._lock:
            self.refused.add(write)

    def problems(self, there: Set[int]) -> Iterator[str]:
        """Yield a line if the writes that are there lack an acknowledged one or contain a refused one."""
        if lost := self.acknowledged - there:
            yield f"{len(lost)} acknowledged writes are lost, such as {min(lost)}"
        if kept := self.refused & there:
            yield f"{len(kept)} refused writes are there, such as {min(kept)}"


def seconds(default: float) -> float:
    """The length of a run: ``PGCOMBINE_TEST_CHAOS_SECONDS``, or ``default``."""
    return float(os.environ.get("PGCOMBINE_TEST_CHAOS_SECONDS", default))


Task = Callable[[random.Random], None]


@dataclass
class Run:
    """Threads that disturb each other for ``seconds``, counts of what happened, and what is wrong.

    While an event in ``happen`` hasn't been counted, a run goes on for at most ``more`` seconds. It ends when something
    is wrong.
    """

    seconds: float
    happen: Sequence[str] = ()
    more: float = 300.0
    seed: int = field(default_factory=lambda: random.randrange(10**6))
    figures: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.began = time.monotonic()
        self._lock = threading.Lock()

    @property
    def over(self) -> bool:
        late = time.monotonic() - self.began - self.seconds
        return bool(self.wrong) or late > (0 if all(map(self.figures.get, self.happen)) else self.more)

    def count(self, figure: str, number: int = 1) -> None:
        with self._lock:
            self.figures[figure] += number

    def fail(self, what: str) -> None:
        with self._lock:
            self.wrong.append(f"after {time.monotonic() - self.began:.1f} s: {what}")

    def wait(self, seconds: float) -> None:
        """Wait, but not beyond the end of the run."""
        until = time.monotonic() + seconds
        while not self.over and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, 0.2))

    def guarded(self, task: Task, number: int) -> None:
        try:
            task(random.Random(self.seed * 100 + number))
        except BaseException as error:
            self.fail(f"{getattr(task, '__name__', task)}: {error!r}")

    @contextmanager
    def beside(self, *tasks: Task) -> Iterator[None]:
        """Run each task in a thread during the block, whose end waits for the threads. An exception is a failure."""
        threads = [threading.Thread(target=self.guarded, args=(task, number)) for number, task in enumerate(tasks)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            for thread in threads:
                thread.join()

    def run(self, *tasks: Task) -> None:
        with self.beside(*tasks):
            pass

    def succeeded(self) -> None:
        """Check that nothing is wrong, and that each event in ``happen`` was counted. Prints the counts."""
        print(self)
        assert not self.wrong, "\n".join(self.wrong)
        assert [event for event in self.happen if not self.figures[event]] == []
