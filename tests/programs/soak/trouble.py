"""Trouble on purpose: daemons, sessions and servers are killed, and a snapshot is held.

Daemons and servers are killed with SIGKILL, sessions on server ``a`` by pg_terminate_backend. Server ``b`` stays
stopped for some time, so that hints and entries wait; server ``a`` is started again at once. Server ``a`` isn't killed
while the snapshot is held in it.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

import psycopg

from .installation import Installation

VICTIMS = {"daemon": 8, "session": 4, "server b": 2, "server a": 1}  # relative frequencies
_SESSIONS = """
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
      and application_name is distinct from %s
    order by random() limit 1
"""
_HOLDER = "soak: old snapshot"


@dataclass
class Trouble:
    """A kill about every ``gap`` seconds, and a snapshot that is held in the middle third of ``seconds``."""

    installation: Installation
    seconds: float
    gap: float
    seed: int
    kills: Counter[str] = field(default_factory=Counter)
    held_from: float | None = None  # a value of time.monotonic(), like ``held_until``
    held_until: float | None = None

    def kill(self, over: threading.Event) -> None:
        """Kill random victims at random times until ``over`` is set."""
        chance = random.Random(self.seed)
        while not over.wait(chance.uniform(0.5, 1.5) * self.gap):
            victim = chance.choices(list(VICTIMS), weights=list(VICTIMS.values()))[0]
            if victim == "daemon":
                victim = chance.choice(list(self.installation.daemons))
                self.installation.daemons[victim].kill()
            elif victim == "session":
                self._terminate()
            elif victim == "server b":
                self._crash("b", over, chance.uniform(0.3, 1.0) * self.gap)
            elif self.held_from is None or self.held_until is not None:
                self._crash("a", over, 0.0)
            else:
                continue
            self.kills[victim] += 1

    def _terminate(self) -> None:
        with suppress(psycopg.Error), self.installation.servers["a"].connect() as connection:
            connection.execute(_SESSIONS, (_HOLDER,))

    def _crash(self, name: str, over: threading.Event, away: float) -> None:
        server = self.installation.servers[name]
        server.kill()
        over.wait(away)
        server.start()

    def hold(self, over: threading.Event) -> None:
        if over.wait(self.seconds / 3):
            return
        self.held_from = time.monotonic()
        server = self.installation.servers["a"]
        server.start()  # the server may have been killed a moment ago
        with psycopg.connect(server.direct, application_name=_HOLDER) as connection:
            connection.execute("set transaction isolation level repeatable read")
            connection.execute("select count(*) from public.written")
            over.wait(self.seconds / 3)
            connection.execute("select 1")  # raises if the session was lost
        self.held_until = time.monotonic()
