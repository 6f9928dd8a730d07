"""Sessions that use the budget ``seats`` at random, and a model of what it has.

Each transaction also writes what it does into the table ``ledger``, so that the ledger is right whichever transactions
commit. A trigger writes the ends of holds, since workers end holds, too. In each snapshot the amounts of the budget,
the current values of its queue and the sums of the ledger must agree. At the end the ledger is replayed in the order of
the commits:

- No commit may leave less than nothing of a key. A transaction that sees what another one has committed has a later
  time of commit, so the order is right wherever it matters.
- Each hold must have ended once, with its amount.
- Each refusal must have been true at some time of its call: without what was surely visible by then, and what the
  transaction itself had changed, the key had too little.
"""

from __future__ import annotations

import os
import random
import socket
import time
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, count
from typing import Any

import psycopg
from support.audit import Run, differences
from support.budgets import call, has, problems
from support.queues import one, rows
from support.wait import eventually

SHOWS = [1, 2, 3]
HAPPEN = [
    *("add", "take", "take_all", "hold", "settle", "release", "expired", "refused", "PC060"),
    *("commit", "rollback", "prepared", "savepoints", "sessions terminated", "clients gone"),
]
LEDGER = """
    create table ledger (tx xid8 not null default pg_current_xact_id(), show int, available int, held int,
        began text unique, ended text unique, by text default current_setting('application_name'));
    create index on ledger (tx);
    create function hold_ended() returns trigger language plpgsql as $$
    begin
        insert into public.ledger (show, available, held, ended) values (old.show, old.amount, -old.amount, old.hold);
        return null;
    end $$;
    create trigger hold_ended after delete on pgcombine.seats_holds for each row execute function hold_ended()
"""
NOTE = "insert into ledger (show, available, held, began) values (%s, %s, %s, %s)"
OWN = "select show, sum(available)::int from ledger where tx = pg_current_xact_id() group by show"
SNAPSHOT = """
    select k.show, coalesce(b.available, 0), coalesce(b.held, 0), coalesce(c.available, 0), coalesce(c.held, 0),
           l.available, l.held, l.expired, pg_snapshot_xmin(pg_current_snapshot())::text::bigint
    from unnest(%s::int[]) k (show) left join pgcombine.seats b using (show) left join pgcombine.seats_current c
    using (show) cross join lateral (
        select coalesce(sum(l.available), 0), coalesce(sum(l.held), 0),
               count(*) filter (where l.ended is not null and l.by like 'pgcombine%%')
        from ledger l where l.show = k.show) l (available, held, expired)
"""
COMMITS = """
    select show, sum(available)::int as available, sum(held)::int, tx::text::bigint,
           extract(epoch from pg_xact_commit_timestamp(tx::xid))::float as at
    from ledger group by show, tx order by at, available desc
"""
ENDS = """
    select coalesce(b.began, e.ended) from (select * from ledger where began is not null) b
    full join (select * from ledger where ended is not null) e on e.ended = b.began
    where (b.show, b.available, b.held) is distinct from (e.show, - e.available, - e.held)
"""


@dataclass
class Refusal:
    """``needs`` is what committed transactions should have left of a key, so that the call had to succeed."""

    began: float
    ended: float
    needs: Mapping[int, int]


class Crowd(Run):
    """``dsn`` returns the address of the database, which has the budget. The keys begin with 300 each."""

    def __init__(self, dsn: Callable[[], str], seconds: float, happen: Sequence[str] = HAPPEN, **more: Any) -> None:
        super().__init__(seconds, happen, **more)
        self.dsn = dsn
        self.numbers = count()
        self.holds: list[str] = []
        self.refusals: list[Refusal] = []
        self.seen: list[tuple[int, float]] = []  # transactions below this number have surely ended before this time
        self.sessions: dict[int, psycopg.Connection] = {}
        with self.connect() as conn:
            conn.execute(LEDGER)
            for show in SHOWS:
                call(conn, "add", show, 300)
                conn.execute(NOTE, (show, 300, 0, None))
        self.began = time.monotonic()

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(self.dsn(), autocommit=True, application_name="crowd")

    def crowd(self, sessions: int, *others: Callable[[random.Random], None]) -> Crowd:
        self.run(*[self.take_part] * sessions, self.watch, self.disturb, *others)
        with self.connect() as conn:
            self.settle(conn)
            if not self.wrong:
                self.check(conn)
        return self

    def connected(self, work: Callable[[psycopg.Connection], None]) -> None:
        """Call ``work`` until the end, each time with a new connection if it has lost the one before."""
        while not self.over:
            try:
                with self.connect() as conn:
                    work(conn)
            except psycopg.OperationalError as error:
                if error.sqlstate and not error.sqlstate.startswith(("08", "57P")):
                    raise
                time.sleep(0.05)

    # sessions

    def take_part(self, chance: random.Random) -> None:
        number = next(self.numbers)

        def work(conn: psycopg.Connection) -> None:
            name = f"{conn.info.dbname} {number}."
            self.end_prepared(conn, name, chance)
            self.sessions[number] = conn
            while not self.over:
                self.transaction(conn, chance, f"{name}{next(self.numbers)}")

        self.connected(work)

    def transaction(self, conn: psycopg.Connection, chance: random.Random, name: str) -> None:
        conn.execute("begin")
        for _ in range(chance.choice([1, 1, 2, 3])):
            conn.execute("savepoint s")
            try:
                self.change(conn, chance)
            except psycopg.Error as error:
                if error.sqlstate not in {"PC060", "40P01"}:
                    raise
                self.count(error.sqlstate)
                conn.execute("rollback to s")
                if error.sqlstate == "40P01":  # the others go on if this transaction takes nothing more
                    break
            else:
                if chance.random() < 0.2:
                    conn.execute("rollback to s")
                    self.count("savepoints")
        if chance.random() < 0.3:
            time.sleep(chance.random() * 0.02)
        end = chance.choice(["commit"] * 6 + ["rollback", "prepared"])
        if end == "prepared":
            conn.execute(f"prepare transaction '{name}'")
            time.sleep(chance.random() * 0.02)
            self.end_prepared(conn, name, chance)
        else:
            conn.execute(end)
        self.count(end)

    def end_prepared(self, conn: psycopg.Connection, name: str, chance: random.Random) -> bool:
        """End the prepared transactions whose names begin so. Returns whether there were any."""
        found = conn.execute("select gid from pg_prepared_xacts where starts_with(gid, %s)", (name,)).fetchall()
        for (gid,) in found:
            # a session that was terminated may still be ending it
            with suppress(psycopg.errors.UndefinedObject, psycopg.errors.ObjectNotInPrerequisiteState):
                conn.execute(f"{chance.choice(['commit', 'rollback'])} prepared '{gid}'")
        return bool(found)

    def change(self, conn: psycopg.Connection, chance: random.Random) -> None:
        """Do something random to the budget, and write it into the ledger."""
        show, amount = chance.choice(SHOWS), chance.choice([1, 1, 1, 2, 5, 20, 60])
        what = chance.choice(["take"] * 5 + ["take_all", "hold", "hold", "settle", "release", "add"])
        if what == "add":
            call(conn, "add", show, 4 * amount)
            conn.execute(NOTE, (show, 4 * amount, 0, None))
            self.count("add")
        elif what == "take":
            if self.attempt(conn, {show: amount}, "take", show, amount, wait=chance.random() < 0.8):
                conn.execute(NOTE, (show, -amount, 0, None))
        elif what == "take_all":
            shows = chance.sample(SHOWS, 2)
            if self.attempt(conn, dict.fromkeys(shows, amount), "take_all", shows, [amount, amount]):
                for each in shows:
                    conn.execute(NOTE, (each, -amount, 0, None))
        elif what == "hold":
            hold, limit = f"{show} {next(self.numbers)}", chance.choice(["20 ms", "10 min"])
            if self.attempt(conn, {show: amount}, "hold", show, amount, hold, limit, wait=chance.random() < 0.8):
                conn.execute(NOTE, (show, -amount, amount, hold))
                self.holds.append(hold)
        elif self.holds:
            hold = chance.choice(self.holds[-40:])
            if what == "settle" and call(conn, "settle", hold, 1):
                conn.execute(NOTE, (int(hold.split()[0]), -1, 0, None))
                self.count("settle")
            elif what == "release" and call(conn, "release", hold):
                self.count("release")

    def attempt(
        self, conn: psycopg.Connection, amounts: Mapping[int, int], function: str, *arguments: Any, **named: Any
    ) -> bool:
        began = time.time()
        if call(conn, function, *arguments, **named):
            self.count(function)
            return True
        ended = time.time()
        own = dict(conn.execute(OWN).fetchall())
        self.refusals.append(Refusal(began, ended, {show: n - own.get(show, 0) for show, n in amounts.items()}))
        self.count("refused")
        return False

    # faults

    def disturb(self, chance: random.Random) -> None:
        """Terminate sessions, and let clients vanish as if they were killed: the server sees the end of the stream."""
        while not self.over:
            self.wait(chance.uniform(0, 0.2))
            conn = chance.choice([None, *self.sessions.values()])
            with suppress(OSError, psycopg.OperationalError):
                if conn is None:
                    continue
                if chance.random() < 0.5:
                    pid = conn.info.backend_pid
                    with self.connect() as killer:
                        killer.execute("select pg_terminate_backend(%s)", (pid,))
                    self.count("sessions terminated")
                else:
                    with socket.socket(fileno=os.dup(conn.fileno())) as link:
                        link.shutdown(socket.SHUT_RDWR)
                    self.count("clients gone")

    # the model

    def watch(self, _: random.Random) -> None:
        def work(conn: psycopg.Connection) -> None:
            while not self.over:
                self.look(conn)

        self.connected(work)

    def look(self, conn: psycopg.Connection) -> None:
        found = conn.execute(SNAPSHOT, (SHOWS,)).fetchall()
        self.seen.append((found[0][-1], time.time()))
        self.figures["expired"] = sum(expired for *_, expired, _ in found)
        for show, available, held, *others, _, _ in found:
            if min(available, held) < 0 or [available, held] * 2 != others:
                self.fail(f"{show} has {available} and {held}, but the queue and the ledger have {others}")

    def settle(self, conn: psycopg.Connection) -> None:
        """End what is left of the sessions. A database with prepared transactions can't be dropped."""
        chance = random.Random(self.seed)
        left = "select count(*) from pg_stat_activity where application_name = 'crowd' and datname = current_database()"
        eventually(lambda: one(conn, left) == 1, what="the sessions have ended")
        eventually(lambda: not self.end_prepared(conn, f"{conn.info.dbname} ", chance), what="nothing is prepared")

    def check(self, conn: psycopg.Connection) -> None:
        """Let all holds expire, and compare."""
        self.look(conn)
        conn.execute("update pgcombine.seats_holds set expires = now()")
        conn.execute("call pgcombine.drain('seats')")
        self.look(conn)
        self.wrong += problems(conn)
        totals = dict(conn.execute("select show, sum(available) from ledger group by show").fetchall())
        self.wrong += differences("the budget", {show: (n, 0) for show, n in totals.items() if n}, has(conn))
        self.wrong += differences("the values", totals, {show: n for show, n, _ in rows(conn, "seats_values") if n})
        self.wrong += [f"hold {hold} hasn't ended with its amount" for (hold,) in conn.execute(ENDS)]
        commits = conn.execute(COMMITS).fetchall()
        self.wrong += overdrawn(commits)
        self.wrong += [f"false: {refusal}" for refusal in self.false_refusals(commits)]

    def false_refusals(self, commits: Sequence[tuple[Any, ...]]) -> list[Refusal]:
        """The refusals during which the keys surely had enough all the time."""
        looks = [at for _, at in self.seen]
        changes: dict[int, list[tuple[float, int]]] = {show: [] for show in SHOWS}
        for show, available, _, tx, at in commits:
            if available < 0:  # it can be visible from this time on
                changes[show].append((at, available))
            else:
                # after a crash a number can be used again, so only looks after the commit tell of it
                later = self.seen[bisect_left(looks, at) :]
                if (visible := next((time for number, time in later if number > tx), None)) is not None:
                    changes[show].append((visible, available))
        for some in changes.values():
            some.sort()
        times = {show: [at for at, _ in some] for show, some in changes.items()}
        left = {show: list(accumulate((n for _, n in some), initial=0)) for show, some in changes.items()}

        def least(show: int, began: float, ended: float) -> int:
            return min(left[show][bisect_left(times[show], began) : bisect_right(times[show], ended) + 1])

        return [
            one for one in self.refusals if all(least(show, one.began, one.ended) >= n for show, n in one.needs.items())
        ]


def overdrawn(commits: Sequence[tuple[Any, ...]]) -> Iterator[str]:
    available, held = Counter[int](), Counter[int]()
    for show, more, more_held, tx, _ in commits:
        available[show] += more
        held[show] += more_held
        if min(available[show], held[show]) < 0:
            yield f"transaction {tx} has left {available[show]} of {show}, and {held[show]} held"
