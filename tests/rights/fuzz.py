"""Random calls as a hostile role, which has rights on one queue and must not affect another queue.

``python -m tests.rights.fuzz --calls 10000 --seconds 120`` starts an embedded server with two queues, ``own`` and
``other``. For each there are an export, a feed, a rollup, loads in progress, and hints for other servers. A worker
process combines both. The hostile role may insert into ``own``, read it, and replicate its writes. Over several
connections, it calls random functions and procedures that it may execute, with valid and invalid arguments, in
autocommit and in transactions, some of which stay open for a time. It inserts valid and invalid rows, takes locks of
tables and advisory locks, sends notifications, and puts pgcombine's trigger functions on its own tables. Meanwhile the
owner writes to ``other``. At the end, the program checks that

- only the updates and passes of ``other`` have changed ``other``;
- privileges, functions and rows are as before, except rows of ``own`` and of the role, and rows that workers write;
- the values of ``other`` are the sums of its updates, and were combined without long waits;
- the worker still runs, and its log has no traceback;
- each call returned within its timeout and ``GRACE``, and none broke its connection or the server.

The program prints one JSON line, and ends with status 1 if a check fails. ``--seed`` repeats most random choices of an
earlier run, but not the moments at which sessions meet.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
from psycopg import sql

sys.path.insert(0, str(Path(__file__).parents[1]))

from support import start_cli
from support.queues import add, hold, make_queue, one, values, word_in
from support.roles import Roles, as_role
from support.servers import SETTINGS, Server, embedded

from pgcombine.handoff.replicated import new_token

SESSIONS = 6  # number of connections of the hostile role
STATEMENT_TIMEOUT = 2  # seconds: the hostile sessions' statement_timeout
GRACE = 25.0  # seconds by which a call may exceed its timeout on a busy machine
COMBINED_WITHIN = 60.0  # seconds within which updates of the other queue must be combined
HUGE = 2**63 - 1
PAYLOAD = '{"{fluo}","{1}"}'
OWN = re.compile(r"\b(own|own_words|docs?_own)(_|\b)")

FUNCTIONS = """
    select p.oid::regprocedure::text, n.nspname, p.proname, p.prokind, p.prorettype = 'trigger'::regtype,
           p.pronargdefaults, p.prosecdef,
           array(select a.type::regtype::text
                 from unnest(p.proargtypes::oid[]) with ordinality a (type, place) order by a.place),
           (coalesce(p.proargnames, array_fill(''::text, array[p.pronargs])))[1:p.pronargs]
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where n.nspname in ('pgcombine', 'pgcombine_internal')
      and p.proname ~ %s and has_function_privilege(%s, p.oid, 'execute')
    order by 1
"""
# Tables whose rows aren't compared, since workers write rows of ``other`` to them, or since other checks cover them.
CHECKED_OTHERWISE = {
    "tick",
    "pass",
    "pass_minute",
    "sample",
    "handoff_token",
    "handoff_hint",
    "other_updates",
    "other_values",
    "other_changes",
}
# Columns that may change: replicated writes measure the waiting hints, a writer that names a server for the first time
# has it marked for repair, and passes raise the last sequence of a feed.
CHANGING = {"handoff_replica": {"rows", "bytes", "measured_at", "needs_repair", "by_tokens"}, "change_bucket": {"last"}}
RELATIONS = """
    select c.relname, c.relkind,
           format('%s owner=%s acl=%s rls=%s options=%s',
                  c.relkind, c.relowner::regrole, c.relacl, c.relrowsecurity, c.reloptions)
    from pg_class c
    where c.relnamespace = 'pgcombine'::regnamespace and not c.relispartition order by 1
"""
ROUTINES = """
    select 'function ' || p.oid::regprocedure, format('%s %s %s %s', p.proowner, p.proacl, p.proconfig, md5(p.prosrc))
    from pg_proc p
    where p.pronamespace in ('pgcombine'::regnamespace, 'pgcombine_internal'::regnamespace, 'public'::regnamespace)
    union all
    select format('trigger %s on %s', t.tgname, t.tgrelid::regclass),
           format('%s %s', t.tgenabled, pg_get_triggerdef(t.oid))
    from pg_trigger t join pg_class c on c.oid = t.tgrelid where not t.tgisinternal and c.relpersistence <> 't'
    union all
    select format('policy %s on %s', p.polname, p.polrelid::regclass), p::text from pg_policy p
"""
TRANSACTIONS = (
    "begin",
    "begin isolation level repeatable read",
    "begin isolation level serializable",
    "begin read only",
)
LOCKS = (
    "access share",
    "row share",
    "row exclusive",
    "share update exclusive",
    "share",
    "share row exclusive",
    "exclusive",
)
POLYMORPHIC = {"anyelement", "anycompatible", "anynonarray"}

# fmt: off
TEXTS = (
    "", " ", "own", "other", "Own", 'other"', "own_updates", "other_updates", "other_updates_s0", "own_words",
    "other_words", "docs_other", "doc_other", "search", "a", "b", "c", "stage", "values", "export", "server", "word",
    "n", "%I", "%s %L %1$s %", "$1", "$$", "$function$", "'", "'; drop table pgcombine.other_values; --", '"', "\\",
    "a;b", "null", "NaN", "infinity", "-infinity", "x" * 9000, "\u00fc\U0001f600", "\n\r\t\x1b[31m", "{", "{}",
    "{a,b}", PAYLOAD, "{own,other}", "[]", "[1]", '{"word":"x","n":1}', '[{"word":"x","n":1}]', "0", "-1", "1e400",
    str(HUGE), "select 1", "count(*) as n", "select word, n from pgcombine.other_values", "sum",
    "n bigint sum", "word text", "pgcombine.other_values", "pg_catalog.pg_class", "pg_temp", "host=evil password=x",
    "host=b user=app", "postgres", "webhook", "http://127.0.0.1:1/", "/tmp", "C", "22003", "57014", "enqueue", "load",
    "select", "insert", "stream:q:99999999999999999999", "run", "2026-01-01", "jsonb", "bigint", "text[]", "now",
)
# fmt: on
NUMBERS = (0, 0, 1, 1, -1, 2, 3, 7, 63, 64, 255, 1000)
POOLS: dict[str, tuple[str, ...]] = {
    "boolean": ("true", "false"),
    "smallint": (*map(str, NUMBERS), "32767"),
    "integer": (*map(str, NUMBERS), "2147483647", "-2147483648"),
    "bigint": (*map(str, NUMBERS), str(HUGE), str(-HUGE - 1)),
    "oid": ("0", "1", "23", "25", "1259", "4294967295"),
    "numeric": ("0", "1", "-1.5", "NaN", "1e200"),
    "double precision": ("0", "1", "NaN", "Infinity", "-Infinity", "1e308"),
    "interval": ("0", "1 second", "-1 second", "1 day", "-100 years", "100000000 years", "1 microsecond"),
    "timestamp with time zone": ("now", "-infinity", "infinity", "2000-01-01", "294276-01-01"),
    "date": ("today", "-infinity", "infinity", "2000-01-01", "tomorrow"),
    "xid8": ("0", "3", "99", "18446744073709551615"),
    "regclass": (
        *("pg_catalog.pg_class", "pg_catalog.pg_authid", "pgcombine.own_updates", "pgcombine.other_updates", "12"),
        *(
            "pgcombine.other_values",
            "pgcombine.queue",
            "pgcombine.own_current",
            "doc_other",
            "doc_own",
            "pgcombine.hint",
        ),
    ),
    "jsonb": (
        *("null", "{}", "[]", "0", '"own"', '{"word": "x", "n": 1}', '[{"word": "x", "n": 1}]', '{"word": null}'),
        *(
            '["a", "b"]',
            '{"own": {"a": [0]}}',
            '[{"n": 1e400}]',
            '{"word": "x", "n": "NaN"}',
            "[[[[[]]]]]",
            '{"n": {"n": 1}}',
        ),
    ),
}
FITTING: dict[str, tuple[str, ...]] = {  # valid arguments by name and type of the parameter
    "queue text": ("own", "own", "other"),
    "rollup text": ("docs_own", "docs_other"),
    "export text": ("own_words", "other_words"),
    "feed text": ("own_f", "own_f", "other_f"),
    "consumer text": ("c", "mine"),
    "after jsonb": ("{}", "{}", '{"0": 0}', '{"0": 1, "1": 1}'),
    "upto jsonb": ('{"0": 1}', '{"1": 2}', "{}"),
    "destination text": ("b", "c"),
    "coordinator text": ("b", "c"),
    "server text": ("a", "b"),
    "other text": ("b",),
    "bucket integer": ("0", "1"),
    "kind text": ("stage", "values", "export", "server"),
    "run_id text": ("run", "other run", *(f"run {number}" for number in range(10))),
    "payload text": (PAYLOAD, PAYLOAD, '{"{a,b}","{1,2}"}'),
    "payloads text[]": (*[r'{"{\"{fluo}\",\"{1}\"}"}'] * 4, "{NULL}"),
    "servers text[]": ("{a,b,c}", "{a,b}"),
    "servers jsonb[]": ("{NULL}", r'{"[\"a\",\"b\"]"}'),
    "destinations text[]": ("{b}", "{c}", "{b}", "{b,c}"),
    "updates integer[]": ("{1}", "{1}", "{1}", "{1,1}"),
    "replicas integer": ("2", "3"),
    "role name": ("postgres", "pgcombine", "pg_monitor"),
}


@dataclass
class Outcome:
    """The result of a run.

    ``errors`` counts calls by SQLSTATE: empty for success, ``none`` for an error without one. ``wrong`` lists failed
    checks. ``longest_call`` and ``longest_wait`` are the seconds of the longest call, and of the owner's longest call
    of ``pgcombine.wait``.
    """

    seed: int
    calls: int = 0
    functions: int = 0
    never_succeeded: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    updates: int = 0
    accepted: int = 0
    longest_call: float = 0.0
    longest_wait: float = 0.0
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)


class World:
    """The two queues, and pools of arguments that name objects of the queues. The owner is a superuser."""

    def __init__(self, owner: psycopg.Connection) -> None:
        self.owner = owner
        self.written: Counter[str] = Counter()
        self.pools = {name: list(pool) for name, pool in POOLS.items()}
        self.fitting = {name: list(pool) for name, pool in FITTING.items()}
        loads: list[UUID] = []
        self.server = one(owner, "select id from pgcombine_internal.handoff_handshake('a')")
        owner.execute(
            "select pgcombine_internal.handoff_register(n, 'host=' || n || ' user=app') from unnest('{b,c}'::text[]) n"
        )
        for queue in ("own", "other"):
            make_queue(owner, queue, buckets=2)
            word = word_in(owner, 0, queue)
            add(owner, {word: 1}, queue)
            hold(owner, queue, word=word)
            owner.execute("select pgcombine.create_export(%s, %s)", (f"{queue}_words", queue))
            owner.execute("select pgcombine.create_feed(%s, %s)", (f"{queue}_f", queue))
            owner.execute("select pgcombine.commit_feed(%s, 'c', '{}')", (f"{queue}_f",))
            owner.execute(sql.SQL("create table {} (body text)").format(sql.Identifier(f"doc_{queue}")))
            owner.execute(
                "select pgcombine.create_rollup(%s, %s, '{body}', '{count(*) as n, max(body) as top}')",
                (f"docs_{queue}", f"public.doc_{queue}"),
            )
            # the worker's upkeep would backfill later, and change the row of the rollup
            one(owner, "select pgcombine_internal.backfill_slice(%s)", f"docs_{queue}")
            for _ in range(3):  # a load of values would need an empty queue
                loads.append(uuid4())
                begin = "select pgcombine_internal.begin_load(%s, %s, %s, 'stage')"
                one(owner, begin, loads[-1], queue, f"{queue} {loads[-1]}")
            owner.execute("insert into pgcombine.token (queue, token, updates) values (%s, 'run', 1)", (queue,))
        ages = ("-23 hours", "-2 days", "13 days", "1 year")
        tokens = [new_token(), new_token(), *(self._token_of(age) for age in ages)]
        self.accept_write("own", tokens[0])
        self.accept_write("other", tokens[1])
        shapes = [str(one(owner, "select pgcombine_internal.handoff_shape(%s)", queue)) for queue in ("own", "other")]
        self.pools["uuid"] = [
            *map(str, [*loads, *tokens, uuid4(), uuid4(), self.server]),
            "ffffffff-ffff-7fff-ffff-ffffffffffff",
            "00000000-0000-0000-0000-000000000000",
            "017f22e2-79b0-7cc3-98c4-dc0c0c07398f",
            *shapes,
        ]
        self.fitting |= {
            "load uuid": [*map(str, loads), *(str(uuid4()) for _ in range(10))],
            "server uuid": [str(self.server)],
            "shape uuid": shapes,
            "digest uuid": [shapes[0]],
            "digests uuid[]": [array([shapes[0]])],
        }
        self.write([(f"first{number}", 1) for number in range(10)])  # these keys get no further update
        for composite in ("queue_column", "rollup", "combiner"):
            rows = owner.execute(sql.SQL("select t::text from {} t").format(sql.Identifier("pgcombine", composite)))
            self.pools[f"pgcombine.{composite}"] = [text for (text,) in rows]

    def _token_of(self, age: str) -> UUID:
        moment = one(self.owner, "select (extract(epoch from now() - %s::interval) * 1000)::bigint", age)
        return UUID(int=moment << 80 | 0x7 << 76 | 0x2 << 62 | random.getrandbits(60))

    def write(self, updates: list[tuple[str, int]]) -> None:
        """Enqueue updates to ``other`` and record them."""
        add(self.owner, updates, "other")
        for word, n in updates:
            self.written[word] += n

    def accept_write(self, queue: str, token: UUID) -> None:
        """Accept on this server a write of one update for the servers a, b and c."""
        self.owner.execute(
            "select pgcombine_internal.handoff_accept(%s, %s, %s, pgcombine_internal.handoff_shape(%s), "
            "%s, '{a,b,c}', 3)",
            (self.server, token, queue, queue, PAYLOAD),
        )
        if queue == "other":
            self.written["fluo"] += 1

    def snapshot(self, role: str) -> dict[str, str]:
        """Return what must stay as it is: privileges, code, and compared rows, without those of the queue ``own``."""
        found: dict[str, str] = {}
        for name, kind, rights in self.owner.execute(RELATIONS).fetchall():
            if OWN.search(name) or f"owner={role} " in rights or (name.startswith("spark_stage_") and role in rights):
                continue
            found[f"relation {name}"] = rights
            if kind not in ("r", "p") or name in CHECKED_OTHERWISE:
                continue
            rows = self.owner.execute(sql.SQL("select to_jsonb(t) from {} t").format(sql.Identifier("pgcombine", name)))
            left = sorted(
                json.dumps({k: v for k, v in row.items() if k not in CHANGING.get(name, ())}, sort_keys=True)
                for (row,) in rows
                if row.get("queue") != "own" and row.get("role") != role and not self._belongs_to_own(name, row)
            )
            found[f"rows of {name}"] = "\n".join(left)
        return found | dict(self.owner.execute(ROUTINES).fetchall())

    def _belongs_to_own(self, table: str, row: dict[str, Any]) -> bool:
        """Whether a row that doesn't name a queue belongs to the hostile role or its queue."""
        if table == "handoff_delivery":  # the hostile role can store this token by handoff_acknowledge
            return row["token"] == "00000000-0000-0000-0000-000000000000"
        if table == "spark_alive":
            loads = "select exists (select from pgcombine.spark_load where load = %s and queue = 'other')"
            return not one(self.owner, loads, row["load"])
        return False


def array(elements: Iterable[str | None]) -> str:
    """Return the text of a PostgreSQL array."""
    quoted = ("NULL" if e is None else '"' + re.sub(r'(["\\])', r"\\\1", e) + '"' for e in elements)
    return "{" + ",".join(quoted) + "}"


class Feeder:
    """The owner, who writes to ``other`` in a thread, and measures how long calls of ``pgcombine.wait`` take."""

    def __init__(self, dsn: str, world: World, seed: int, outcome: Outcome) -> None:
        self.dsn, self.world, self.chance, self.outcome = dsn, world, random.Random(seed), outcome

    def run(self, stop: threading.Event) -> None:
        try:
            with psycopg.connect(self.dsn, autocommit=True, options="-c statement_timeout=30s") as conn:
                self.world.owner, before = conn, self.world.owner
                try:
                    while not stop.is_set():
                        self._round(conn)
                        stop.wait(0.05)
                finally:
                    self.world.owner = before
        except Exception as error:
            self.outcome.wrong.append(f"the other queue's writer got {type(error).__name__}: {error}")

    def _round(self, conn: psycopg.Connection) -> None:
        updates = [(f"word{self.chance.randrange(40)}", self.chance.choice([1, 2, -1])) for _ in range(10)]
        self.world.write(updates)
        self.outcome.updates += len(updates)
        self.world.accept_write("other", new_token())
        self.outcome.accepted += 1
        if self.chance.random() < 0.3:
            began = time.monotonic()
            conn.execute("set statement_timeout = 0")
            conn.execute("call pgcombine.wait('other', make_interval(secs => %s))", (COMBINED_WITHIN,))
            conn.execute("set statement_timeout = '30s'")
            self.outcome.longest_wait = max(self.outcome.longest_wait, time.monotonic() - began)


class Calls:
    """Counts the calls of all sessions, and detects calls that don't return."""

    def __init__(self, limit: int, until: float, outcome: Outcome) -> None:
        self.outcome = outcome
        self.errors: Counter[str] = Counter()
        self.succeeded: set[str] = set()
        self._limit, self._until = limit, until
        self._lock = threading.Lock()
        self._in_progress: dict[int, tuple[float, str]] = {}

    @property
    def over(self) -> bool:
        return self.outcome.calls >= self._limit or time.monotonic() > self._until

    @contextmanager
    def one(self, what: str) -> Iterator[None]:
        me, began = threading.get_ident(), time.monotonic()
        with self._lock:
            self.outcome.calls += 1
            self._in_progress[me] = began, what
        state, note = "", None
        try:
            yield
        except psycopg.Error as error:
            state = error.sqlstate or "none"
            if state[:2] == "XX" or state in ("none", "57P01", "57P02", "57P03") or state[:2] == "08":
                note = f"{what}: {type(error).__name__} {state} {str(error)[:300]}"
        with self._lock:
            took = time.monotonic() - began
            self.outcome.longest_call = max(self.outcome.longest_call, took)
            del self._in_progress[me]
            self.errors[state] += 1
            if not state:
                self.succeeded.add(what)
            if note:
                self.outcome.wrong.append(note)
            if took > STATEMENT_TIMEOUT + GRACE:
                self.outcome.wrong.append(f"{what} took {took:.1f} s")

    def hanging(self) -> list[str]:
        """Return the calls in progress that are far beyond their timeout."""
        with self._lock:
            late = time.monotonic() - STATEMENT_TIMEOUT - 2 * GRACE
            return [what for began, what in self._in_progress.values() if began < late]


class Hostile:
    """The hostile role in one thread, with one session after another."""

    def __init__(self, dsn: str, world: World, functions: list[tuple[Any, ...]], calls: Calls, seed: int) -> None:
        self.dsn, self.world, self.functions, self.calls = dsn, world, functions, calls
        self.chance = random.Random(seed)
        self.privileged = [function for function in functions if function[6]] or functions
        self.triggers = [function for function in functions if function[4]]
        self.others = ("queue", "bucket", "own_updates", "other_updates", "own_values", "other_values", "handoff_token")

    def run(self) -> None:
        try:
            while not self.calls.over:
                with suppress(psycopg.OperationalError), psycopg.connect(self.dsn, autocommit=True) as conn:
                    for _ in range(200):
                        if self.calls.over or conn.closed:
                            break
                        self._turn(conn)
                    self.calls.outcome.wrong += ["a call closed its connection"] if conn.broken else []
        except BaseException as error:  # an error of this program, not of a call
            self.calls.outcome.wrong.append(f"a session ended with {error!r}")
            raise

    def _turn(self, conn: psycopg.Connection) -> None:
        if self.chance.random() < 0.5:
            conn.execute(f"set statement_timeout = '{STATEMENT_TIMEOUT}s'".encode())
            self._act(conn)
            return
        conn.execute(self.chance.choice(TRANSACTIONS))
        conn.execute("savepoint saved")
        for _ in range(self.chance.randrange(1, 6)):
            if conn.info.transaction_status.name == "INERROR":
                conn.execute("rollback to saved")
            if conn.info.transaction_status.name == "INTRANS":  # an earlier call may have changed the timeout
                conn.execute(f"set local statement_timeout = '{STATEMENT_TIMEOUT}s'".encode())
            self._act(conn)
        if self.chance.random() < 0.1:
            time.sleep(self.chance.uniform(0.1, 3))  # the transaction stays open and keeps its locks
        with suppress(psycopg.Error):
            conn.execute(self.chance.choice(["rollback", "rollback", "commit"]))
        if conn.info.transaction_status.name != "IDLE":
            conn.rollback()

    def _act(self, conn: psycopg.Connection) -> None:
        act = self.chance.choices(
            [self._function, self._insert, self._copy, self._lock, self._advise, self._trigger, self._select],
            [85, 5, 2, 3, 2, 1, 2],
        )[0]
        with suppress(psycopg.errors.InFailedSqlTransaction, psycopg.errors.NoActiveSqlTransaction):
            act(conn)

    def _function(self, conn: psycopg.Connection) -> None:
        signature, schema, name, kind, _trigger, defaults, _security_definer, types, names = self.chance.choice(
            self.privileged if self.chance.random() < 0.3 else self.functions
        )
        given = len(types) - self.chance.randrange(defaults + 1)
        generic = self.chance.choice(["text", "bigint", "jsonb", "numeric", "double precision", "text[]"])
        types = [
            generic if t in POLYMORPHIC else f"{generic.removesuffix('[]')}[]" if t == "anyarray" else t for t in types
        ]
        arguments = [self._value(t, n) for t, n in zip(types[:given], names[:given], strict=True)]
        call = sql.SQL("{} {}.{}({})").format(
            sql.SQL("call" if kind == "p" else self.chance.choice(["select", "select", "select * from"])),
            *(sql.Identifier(schema), sql.Identifier(name)),
            sql.SQL(", ").join(sql.SQL("%s::{}").format(sql.SQL(t)) for t in types[:given]),
        )
        with self.calls.one(signature):
            conn.execute(call, arguments, prepare=False)

    def _value(self, kind: str, name: str) -> str | None:
        if self.chance.random() < 0.05:
            return None
        fitting = self.world.fitting.get(f"{name} {kind}")
        if fitting and self.chance.random() < 0.85:
            return self.chance.choice(fitting)
        if name.startswith("token") and kind == "uuid" and self.chance.random() < 0.5:
            return str(new_token())
        if kind.endswith("[]"):
            length = self.chance.choice([0, 1, 1, 1, 2, 3])
            return array(self._value(kind[:-2], name.removesuffix("s")) for _ in range(length))
        return self.chance.choice(self.world.pools.get(kind, TEXTS))

    def _insert(self, conn: psycopg.Connection) -> None:
        with self.calls.one("insert"):
            if self.chance.random() < 0.5:
                rows = [(self.chance.choice(TEXTS), self.chance.choice([1, 1, -1, HUGE])) for _ in range(5)]
                add(conn, rows, "own")
            else:
                conn.execute(
                    "insert into pgcombine.own_updates (word, n, pgcombine_tx) values (%s, %s::bigint, %s::bigint)",
                    [self._value(t, "") for t in ("text", "bigint", "bigint")],
                )

    def _copy(self, conn: psycopg.Connection) -> None:
        table = self.chance.choice(["own_updates", "own_updates", "other_updates", "own_values"])
        copy = sql.SQL("copy {} from stdin").format(sql.Identifier("pgcombine", table))
        with self.calls.one("copy"), conn.cursor().copy(copy) as rows:
            for _ in range(self.chance.randrange(20)):
                rows.write(self.chance.choice(["x\t1\t\\N\n", "y\t2\t0\n", "\\N\n", "\t\n", "{\t{\t{\n"]))

    def _lock(self, conn: psycopg.Connection) -> None:
        table = sql.Identifier("pgcombine", self.chance.choice(self.others))
        with self.calls.one("lock"):
            conn.execute(sql.SQL("lock table {} in {} mode").format(table, sql.SQL(self.chance.choice(LOCKS))))

    def _advise(self, conn: psycopg.Connection) -> None:
        if self.chance.random() < 0.3:
            with self.calls.one("notify"):
                channel = self.chance.choice(["pgcombine.own", "pgcombine.other"])
                conn.execute("select pg_notify(%s, %s)", (channel, self.chance.choice(TEXTS)[:7000]))
            return
        names = (
            "pgcombine",
            "pgcombine.migrate",
            "pgcombine.idle.other",
            "pgcombine.other",
            "other",
            "pgcombine.handoff",
        )
        lock = self.chance.choice(["pg_advisory_lock", "pg_advisory_xact_lock", "pg_try_advisory_lock"])
        key = self.chance.choice(["hashtext(%s)", "hashtext(%s), 0", "hashtextextended(%s, 0)"])
        with self.calls.one("advisory lock"):
            conn.execute(f"select {lock}({key})".encode(), (self.chance.choice(names),))

    def _trigger(self, conn: psycopg.Connection) -> None:
        if not self.triggers:
            return
        function = self.chance.choice(self.triggers)
        with self.calls.one(f"trigger {function[2]}"):
            conn.execute("create temp table if not exists doc_other (word text, n bigint, body text)")
            conn.execute(
                sql.SQL(
                    "create or replace trigger t {} insert on pg_temp.doc_other {} for each {} "
                    "execute function {}.{}({})"
                ).format(
                    sql.SQL(self.chance.choice(["after", "before"])),
                    sql.SQL(
                        self.chance.choice(["", "referencing new table as new_rows", "referencing new table as added"])
                    ),
                    sql.SQL(self.chance.choice(["row", "statement"])),
                    *(sql.Identifier(function[1]), sql.Identifier(function[2])),
                    sql.SQL(", ").join(sql.Literal(self.chance.choice(TEXTS)) for _ in range(self.chance.randrange(4))),
                )
            )
            conn.execute("insert into pg_temp.doc_other values ('x', 1, 'x')")

    def _select(self, conn: psycopg.Connection) -> None:
        table = sql.Identifier("pgcombine", self.chance.choice(self.others))
        end = self.chance.choice(["limit 10", "limit 10 for update", "limit 10 for key share nowait"])
        with self.calls.one("select"):
            conn.execute(sql.SQL("select * from {} {}").format(table, sql.SQL(end)))


def run(dsn: str, log: Path, *, calls: int, seconds: float, seed: int, only: str = "") -> Outcome:
    """Make about ``calls`` calls, for about ``seconds`` at most, and check the result.

    Functions are called if their names match the regular expression ``only``. ``dsn`` is a superuser's URI of a
    migrated database. The worker logs to the file ``log``.
    """
    outcome = Outcome(seed)
    began = time.monotonic()
    with ExitStack() as stack:
        owner = stack.enter_context(psycopg.connect(dsn, autocommit=True))
        world = World(owner)
        roles = stack.enter_context(Roles(owner, dsn))
        role = roles.login(
            *("insert on pgcombine.own_updates", "select on pgcombine.own_values", "select on pgcombine.own_current")
        ).info.user
        owner.execute("select pgcombine.grant_right('handoff', %s, 'own')", (role,))
        functions = owner.execute(FUNCTIONS, (only, role)).fetchall()
        outcome.functions = len(functions)
        told = stack.enter_context(log.open("w"))
        worker = stack.enter_context(
            start_cli(
                "worker", "--concurrency", 2, "--poll", 0.2, "--dsn", dsn, stdout=told, env={"PGCOMBINE_DSN": None}
            )
        )
        owner.execute("call pgcombine.wait('other', '1 min')")
        before = world.snapshot(role)

        counted = Calls(calls, time.monotonic() + seconds, outcome)
        hostile = as_role(dsn, role)
        stop = threading.Event()
        feeder = threading.Thread(target=Feeder(dsn, world, seed, outcome).run, args=(stop,))
        sessions = [
            threading.Thread(target=Hostile(hostile, world, functions, counted, seed * 1000 + i).run, daemon=True)
            for i in range(SESSIONS)
        ]
        for thread in (feeder, *sessions):
            thread.start()
        while any(session.is_alive() for session in sessions):
            if late := counted.hanging():
                outcome.wrong.append(f"hanging beyond their timeout: {late}")
                owner.execute("select pg_terminate_backend(pid) from pg_stat_activity where usename = %s", (role,))
            for session in sessions:
                session.join(1)
        stop.set()
        feeder.join()
        outcome.errors = dict(counted.errors.most_common())
        outcome.never_succeeded = len({f[0] for f in functions} - counted.succeeded)
        check(world, before, role, worker.poll(), log, outcome)
        outcome.seconds = round(time.monotonic() - began, 1)
    return outcome


def check(world: World, before: dict[str, str], role: str, status: int | None, log: Path, outcome: Outcome) -> None:
    """Check ``other``, the worker, and that the snapshot is as ``before``. Adds each problem to ``outcome.wrong``."""
    owner = world.owner
    expected = {word: n for word, n in world.written.items() if n}
    try:
        owner.execute("call pgcombine.wait('other', make_interval(secs => %s))", (COMBINED_WITHIN,))
    except psycopg.Error as error:
        outcome.wrong.append(f"the other queue's updates aren't combined: {error}")
    if (found := values(owner, "other")) != expected:
        differ = {w: (expected.get(w), found.get(w)) for w in expected | found if expected.get(w) != found.get(w)}
        outcome.wrong.append(f"values of the other queue (written, found): {differ}")
    changed = {
        row[0]: row[1:]
        for row in owner.execute(
            "select distinct on (word) word, new_n from pgcombine.other_words_exports order by word, seq desc"
        )
    }
    if {word: n for word, (n,) in changed.items() if n is not None} != expected:
        outcome.wrong.append("the other queue's exports don't lead to its values")
    kept = owner.execute(
        "select distinct on (word) word, new_n from pgcombine.other_changes order by word, _sequence desc"
    ).fetchall()
    if {word: n for word, n in kept if n is not None} != expected:
        outcome.wrong.append("the other queue's feed doesn't lead to its values")
    hints = one(owner, "select count(*) from pgcombine.handoff_hint where queue = 'other'")
    tokens = one(owner, "select count(*) from pgcombine.handoff_token where queue = 'other'")
    if (tokens, hints) != (outcome.accepted + 1, 2 * (outcome.accepted + 1)):
        outcome.wrong.append(f"{outcome.accepted + 1} writes were accepted: {tokens} tokens, {hints} hints")
    if problems := owner.execute("select problem from pgcombine.verify('other')").fetchall():
        outcome.wrong.append(f"verify: {problems}")
    after = world.snapshot(role)
    for name in sorted(before | after):
        if before.get(name) != after.get(name):
            was, now = ((seen.get(name) or "nothing").splitlines() for seen in (before, after))
            gone, come = sorted(set(was) - set(now)), sorted(set(now) - set(was))
            outcome.wrong.append(f"{name} changed: gone {gone[:3]}, come {come[:3]}"[:600])
    if status is not None:
        outcome.wrong.append(f"the worker ended, status {status}: {log.read_text()[-1000:]}")
    if "Traceback" in log.read_text():
        outcome.wrong.append("the worker logged a traceback: " + log.read_text()[-2000:])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=120, help="the run ends after this time at the latest")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--only", default="", metavar="REGEX", help="call only the functions whose names match")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", file=sys.stderr)
    with (
        tempfile.TemporaryDirectory(prefix="fuzz-") as home,
        embedded(Path(home) / "server", SETTINGS) as dsn,
        Server("fuzz", dsn).migrated() as database,
    ):
        outcome = run(database, Path(home) / "worker.log", **vars(arguments))
    print(json.dumps(asdict(outcome)))
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
