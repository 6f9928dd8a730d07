"""Random statements on the source of a rollup, whose view must equal its query.

The source is a plain table, or has partitions (of one level or two) or tables that inherit from it. It may have
generated columns, foreign keys that cascade, triggers that change and drop rows, and row security. Most statements name
the source or a table below it. Between the statements, the rollup is backfilled, combined, or replaced by another one.

``run`` runs statements in one session, and ``crowd`` in several sessions at once. ``Table.differing`` compares view and
query in one statement, in the present or in an older snapshot. Even an older snapshot sees the effect of TRUNCATE,
ATTACH and DETACH, so it isn't compared after such a statement.
"""

# ruff: noqa: S608

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial

import psycopg
from support.queues import one
from support.rollups import Rollup
from support.sessions import in_background

WORDS = ["a", "B", "c", "D", "e"]
SHAPES = ["plain", "partitioned", "deep", "heirs"]
KEYS = [["num"], ["num % 3 as third", "low"], ["upper(body) as word", "other"], ["virt"]]
VALUES = [
    "count(*) as n",
    "count(num) as nums",
    "count(*) filter (where other > 1) as others",
    "sum(num) as s",
    "sum(amount) as total",
    "sum(amount) filter (where num > 5 and body <> ') FILTER (WHERE ') as \"the, sum\"",
    "avg(amount) as mean",
    "variance(num) as var",
    "stddev_pop(amount) filter (where part < 2) as dev",
    "min(amount) as least",
    "max(body) as most",
    "max(num) filter (where part = 1) as top",
    "count(distinct low) as words",
    "bool_and(num > 2) as every",
    "string_agg(body, ',' order by body) as texts",
    "array_agg(amount order by amount, id) as amounts",
    "percentile_cont(0.5) within group (order by num) as middle",
    "sum(amount::float8) as floats",
    "public.product(num order by num) as product",
]
FILTERS = [None, None, "num <> 7", "coalesce(body, '') <> 'a, b) FILTER (WHERE'"]
ROUNDED = {"mean": "round(mean, 9)", "var": "round(var, 9)", "dev": "round(dev, 9)"}
ROUNDED["floats"] = "round(floats::numeric, 6)"
# errors with which PostgreSQL may refuse a statement
REFUSALS = (
    psycopg.errors.IntegrityError,
    psycopg.errors.CardinalityViolation,  # a MERGE or an ON CONFLICT that changes a row twice
    psycopg.errors.InsufficientPrivilege,  # row security
    psycopg.errors.FeatureNotSupported,  # COPY under row security
    psycopg.errors.TriggeredDataChangeViolation,
    psycopg.errors.ObjectNotInPrerequisiteState,
)
# Further errors that other sessions may cause, for example a deadlock (OperationalError), a MERGE that meets a row
# which another session moves (InternalError_), or a table that another session puts below the table of a cursor
# (InvalidCursorState).
RIVALRY = (psycopg.OperationalError, psycopg.errors.InternalError_, psycopg.errors.InvalidCursorState)
# the tables below the source, each with the transaction that put it there
TREE = """
select array_agg((i.inhrelid, i.xmin::text) order by i.inhrelid)
from pgcombine_internal.descendants(%s) d join pg_inherits i on i.inhrelid = d"""
# whether the source or a table below it got another file after the session's snapshot, as by TRUNCATE
TRUNCATED = """
select exists (select from pgcombine_internal.descendants(%s) d join pg_class c on c.oid = d and c.relkind = 'r'
               where c.relfilenode is distinct from pg_relation_filenode(c.oid))
"""
# the tables that ``change_parts`` has made: their names, and whether each is below the source now
LATE = """
select 'public.' || c.relname, exists (select from pg_inherits i where i.inhrelid = c.oid)
from pg_class c where c.relname ~ '^late_\\d+$' and c.relkind = 'r' order by c.oid
"""


class Wrong(Exception):
    """A view doesn't equal its query, ``verify`` found a problem, or a statement failed with an unexpected error."""


@dataclass
class Table:
    """The source of a rollup, with its options, and the session that runs statements on it."""

    conn: psycopg.Connection
    chance: random.Random
    shape: str  # one of SHAPES
    virtual: bool  # has a virtual generated column
    cascade: bool  # has foreign keys that cascade
    meddler: bool  # has triggers that change and drop rows
    secured: bool  # has row security
    watched: bool  # has event triggers, which follow changes of the source's definition
    source: str = "public.doc"
    names: list[str] = field(default_factory=list)  # the tables that statements may name
    number: int = 0  # ``row`` gives new rows the ids after this number
    moves: bool = False  # has partitions, so that rows may move
    rollup: Rollup | None = None

    @classmethod
    def make(cls, conn: psycopg.Connection, chance: random.Random, shape: str | None = None, **options: bool) -> Table:
        """Make a random table with rows and a rollup. Replaces the schema public and all rollups.

        Options that aren't given are chosen at random. Before PostgreSQL 18, no table is ``virtual``.
        """
        chosen = {
            name: options.get(name, chance.random() < likely)
            for name, likely in {"virtual": 0.4, "cascade": 0.4, "meddler": 0.4, "secured": 0.4, "watched": 0.7}.items()
        }
        chosen["virtual"] = chosen["virtual"] and conn.info.server_version >= 180000
        table = cls(conn, chance, shape or chance.choice(SHAPES), **chosen)
        conn.execute("select pgcombine.drop_rollup(queue) from pgcombine.rollup")
        conn.execute("drop schema public cascade; create schema public; grant usage on schema public to public")
        conn.execute("set search_path = public")
        conn.execute(
            "create function mul(numeric, integer) returns numeric immutable language sql"
            " as 'select coalesce(($1 * nullif($2, 0)) % 1000007, $1)'"
        )
        conn.execute("create aggregate product (integer) (sfunc = mul, stype = numeric, initcond = 1)")
        table._create()
        for _ in range(3):
            conn.execute(table.insert(table.source))
        if table.secured:
            table._secure()
        table.make_rollup()
        return table

    def make_rollup(self) -> None:
        run, chance = self.conn.execute, self.chance
        self.drop_rollup()
        name = f"r_{chance.randrange(10**6)}"
        values = VALUES[:12] if chance.random() < 0.5 else VALUES  # a pass computes VALUES[12:] from the source
        self.rollup = Rollup.make(
            self.conn,
            [values[n] for n in sorted(chance.sample(range(len(values)), chance.randint(1, 6)))],
            chance.choice(KEYS if self.virtual else KEYS[:-1]),
            name=name,
            source=self.source,
            filter=chance.choice(FILTERS),
            rounded=ROUNDED,
            slice_by=chance.choice([None, "id"]),
        )
        if not self.watched:
            run("drop event trigger if exists pgcombine_follow_ddl; drop event trigger if exists pgcombine_follow_drop")

    def drop_rollup(self) -> None:
        if self.rollup:
            self.conn.execute("select pgcombine.drop_rollup(%s)", (self.rollup.name,))
            self.rollup = None

    def keep_up(self) -> None:
        """Make a new rollup, or run a backfill, a drain or a pass."""
        chance = self.chance
        if self.rollup is None or chance.random() < 0.08:
            self.make_rollup()
        elif chance.random() < 0.7:
            self.rollup.call(self.conn, chance.choice(["backfill", "drain"]))
        else:
            call = "select count(*) from pgcombine.combine(%s, %s)"
            self.conn.execute(call, (self.rollup.name, chance.randrange(2)))

    def differing(self, conn: psycopg.Connection, *, old: bool = False) -> list[tuple[object, ...]] | None:
        """The rows that only the view or only the query has, in the snapshot of ``conn``.

        Returns None if the rollup wasn't ready in the snapshot. With ``old`` it also returns None if a TRUNCATE, ATTACH
        or DETACH came after the snapshot.
        """
        if self.rollup is None or not self.rollup.ready(conn):
            return None
        found = self.rollup.differing(conn)
        if not old:
            return found
        changed = one(conn, TRUNCATED, self.source) or one(conn, TREE, self.source) != one(self.conn, TREE, self.source)
        return None if changed else found

    def _create(self) -> None:
        run, chance = self.conn.execute, self.chance
        columns = "id int not null, part int not null default 0, other int not null default 0, num int, body text"
        columns += ", amount numeric, low text generated always as (lower(body)) stored"
        if self.virtual:
            columns += ", virt text generated always as (upper(body) || ' v') virtual"
        if self.cascade:
            run("create table public.author (num int primary key)")
            run("insert into public.author select generate_series(0, 9)")
        if self.shape == "plain":
            run(f"create table public.doc ({columns})")
            self.names = ["public.doc"]
        elif self.shape == "heirs":
            run(f"create table public.doc ({columns})")
            run("create table public.heir_1 (extra int default 1) inherits (public.doc)")
            run("create table public.heir_2 () inherits (public.heir_1)")
            run("create table public.heir_3 () inherits (public.doc)")
            run("alter table public.heir_2 add column more text")
            self.names = ["public.doc", "public.heir_1", "public.heir_2", "public.heir_3"]
        else:
            self.moves = True
            run(f"create table public.doc ({columns}) partition by list (part)")
            self.names = ["public.doc", "public.part_0", "public.part_1", "public.part_2"]
            run("create table public.part_0 partition of public.doc for values in (0)")
            # This partition has the columns in another order, after a dropped column.
            run(f"create table public.part_1 (gone int, {', '.join(reversed(columns.split(', ')))})")
            run("alter table public.part_1 drop column gone")
            run("alter table public.doc attach partition public.part_1 for values in (1)")
            if self.shape == "partitioned":
                run("create table public.part_2 partition of public.doc for values in (2, 3)")
            else:
                kind = chance.choice(["hash", "range"])
                run(
                    "create table public.part_2 partition of public.doc for values in (2, 3)"
                    f" partition by {kind} (other)"
                )
                for n in range(2):
                    bound = f"with (modulus 2, remainder {n})" if kind == "hash" else f"from ({n * 2}) to ({n * 2 + 2})"
                    run(f"create table public.part_2{n} partition of public.part_2 for values {bound}")
                self.names += ["public.part_20", "public.part_21"]
        for name in self.names if self.shape == "heirs" else self.names[:1]:
            run(f"alter table {name} add primary key (id, part, other)")
            if self.cascade:
                actions = chance.choice(["cascade", "set null"]), chance.choice(["cascade", "set null"])
                run(
                    f"alter table {name} add foreign key (num) references public.author"
                    f" on delete {actions[0]} on update {actions[1]}"
                )
        if self.cascade and self.shape != "heirs":
            run(
                "create table public.note (id int, part int, other int, foreign key (id, part, other)"
                " references public.doc on delete cascade on update cascade)"
            )
        if self.meddler:
            run(
                f"""
                create function public.meddle() returns trigger language plpgsql as $$
                begin
                    if tg_op = 'DELETE' then
                        return case when old.num is distinct from 3 then old end;
                    elsif new.num = 4 then
                        return null;
                    elsif new.num = 5 then
                        new.body := new.body || ' meddled';
                    elsif new.num = 6 and tg_op = 'INSERT' and pg_trigger_depth() < 2 then
                        update {self.names[0]} set amount = amount + 1 where num = 2;
                    end if;
                    return new;
                end
                $$
                """
            )
            for name in self.names if self.shape == "heirs" else self.names[:1]:
                events = chance.choice(["insert", "insert or update or delete"])
                run(f"create trigger meddle before {events} on {name} for each row execute function public.meddle()")

    def _secure(self) -> None:
        """Make a role that sees, and may change, only some of the rows."""
        run = self.conn.execute
        run(f"create role {self.limited}")
        run(f"grant all on all tables in schema public to {self.limited}")
        for name in self.names:
            run(f"alter table {name} enable row level security")
            run(f"create policy seen on {name} using (num is distinct from 1) with check (true)")

    @property
    def limited(self) -> str:
        return f"pgcombine_limited_{self.conn.info.backend_pid}"

    def close(self) -> None:
        """Drop the role that ``_secure`` made."""
        if self.secured:
            self.conn.execute(f"drop owned by {self.limited}; drop role {self.limited}")

    # parts of statements

    def name(self) -> str:
        """A table for a statement, mostly the uppermost one."""
        return self.names[0] if self.chance.random() < 0.6 else self.chance.choice(self.names)

    def late_tables(self) -> dict[str, bool]:
        return dict(self.conn.execute(LATE).fetchall())

    def learn_names(self) -> None:
        """Bring the late tables in ``names`` up to date, because a rollback may have removed one.

        Without event triggers, ``names`` gets no late table, because the rollup wouldn't see a TRUNCATE of it.
        """
        late = list(self.late_tables()) if self.watched else []
        self.names[:] = [name for name in self.names if "late_" not in name] + late

    def only(self) -> str:
        return "only " if self.chance.random() < 0.2 and self.shape in ("plain", "heirs") else ""

    def body(self) -> str:
        chosen = self.chance.choices(WORDS, k=self.chance.randrange(4))
        return "null" if self.chance.random() < 0.05 else f"'{' '.join(chosen)}'"

    def amount(self) -> str:
        special = self.chance.choice(["'NaN'", "'Infinity'", "'-Infinity'", "null"])
        return special if self.chance.random() < 0.1 else str(self.chance.randint(-30, 30) / 10)

    def part(self, name: str | None = None) -> str:
        """Values of the columns part and other for a row, mostly such that the table ``name`` accepts the row."""
        chance = self.chance
        given = {"public.part_0": [0], "public.part_1": [1]}.get(name or "", [0, 1, 2, 3])
        if name and name.startswith("public.part_2"):
            given = [2, 3]
        elif name and name.startswith("public.late_"):
            given = [100 + int(name.removeprefix("public.late_"))]
        others = range(2) if name == "public.part_20" else range(2, 4) if name == "public.part_21" else range(4)
        if chance.random() < 0.03 and self.moves:
            return f"{chance.randrange(4)}, {chance.randrange(4)}"
        return f"{chance.choice(given) if self.moves else 0}, {chance.choice(others)}"

    def row(self, name: str | None = None, *, new: bool = True) -> str:
        """A row of id, part, other, num, body and amount. A row that isn't ``new`` may have the id of another row."""
        self.number += new
        number = self.number if new else self.chance.randint(0, self.number)
        amount = self.amount()
        return f"{number}, {self.part(name)}, {self.chance.randrange(10)}, {self.body()}, {amount}"

    def where(self, row: str = "d") -> str:
        chance = self.chance
        return chance.choice(
            [
                f"{row}.id = {chance.randint(0, self.number)}",
                f"{row}.id % 5 = {chance.randrange(5)}",
                f"{row}.num = {chance.randrange(10)}",
                f"{row}.part = {chance.randrange(4)}",
                f"{row}.body like '%{chance.choice(WORDS)}%' and {row}.id % 2 = {chance.randrange(2)}",
                f"{row}.id > {max(self.number - 8, 0)}",
            ]
        )

    def assignments(self, row: str = "d") -> str:
        chance = self.chance
        kinds = [
            {"body": self.body()},
            {"body": f"coalesce({row}.body, '') || ' {chance.choice(WORDS)}'"},
            {"num": str(chance.randrange(10))},
            {"num": f"({row}.num + {row}.id) % 10"},
            {"amount": f"{row}.amount + 1"},
            {"amount": self.amount()},
            {"id": f"{row}.id"},
            {"other": str(chance.randrange(4))},
            {"body": "default", "amount": "default"},
            *([{"part": str(chance.randrange(4))}] * 3 if self.moves else []),
        ]
        chosen = chance.choice(kinds) | chance.choice([{}, chance.choice(kinds)])
        return ", ".join(f"{column} = {value}" for column, value in chosen.items())

    # statements

    COLUMNS = "(id, part, other, num, body, amount)"

    def insert(self, name: str | None = None) -> str:
        name = name or self.name()
        rows = ", ".join(f"({self.row(name)})" for _ in range(self.chance.randint(1, 5)))
        return f"insert into {name} {self.COLUMNS} values {rows}"

    def insert_select(self) -> str:
        name = self.name()
        self.number += 100
        return (
            f"insert into {name} {self.COLUMNS} select d.id + {self.number}, {self.part(name)}, d.num, d.body, d.amount"
            f" from {self.name()} d where {self.where()} limit 4"
        )

    def upsert(self) -> str:
        name = self.name()
        rows = ", ".join(
            f"({self.row(name, new=self.chance.random() < 0.4)})" for _ in range(self.chance.randint(1, 4))
        )
        statement = f"insert into {name} as d {self.COLUMNS} values {rows} on conflict "
        return statement + self.chance.choice(
            [
                "do nothing",
                "(id, part, other) do update set body = excluded.body, num = d.num",
                "(id, part, other) do update set amount = excluded.amount where d.num < 5",
            ]
        )

    def update(self) -> str:
        return f"update {self.only()}{self.name()} d set {self.assignments()} where {self.where()}"

    def update_from(self) -> str:
        return (
            f"update {self.only()}{self.name()} d set {self.assignments()} from {self.name()} o"
            f" where d.id + o.id = {self.chance.randint(0, 2 * self.number)}"
        )

    def delete(self) -> str:
        using = self.chance.choice(["", f" using {self.name()} o"])
        return f"delete from {self.only()}{self.name()} d{using} where {self.where()}" + (
            " and o.id = d.id + 1" if using else ""
        )

    def truncate(self) -> str:
        only = "only " if self.chance.random() < 0.4 and self.shape in ("plain", "heirs") else ""
        names = ", ".join(only + name for name in dict.fromkeys([self.name(), self.chance.choice(self.names)]))
        options = ["cascade"] if self.cascade else ["", "restart identity", "cascade"]
        return f"truncate {names} {self.chance.choice(options)}"

    def merge(self) -> str:
        chance = self.chance
        name = self.name()
        rows = ", ".join(f"({self.row(name, new=chance.random() < 0.4)})" for _ in range(chance.randint(1, 5)))
        source = chance.choice(
            [
                f"(values {rows}) s (id, part, other, num, body, amount) on d.id = s.id",
                f"(values {rows}) s (id, part, other, num, body, amount) on d.id = s.id and d.part = s.part",
                f"(select id + 1 as id, {self.part(name).replace(',', ' as part,')} as other, num, body, amount"
                f" from {self.name()}) s on d.id = s.id and s.num = {chance.randrange(10)}",
            ]
        )
        matched = [
            f"when matched{chance.choice(['', f' and {self.where()}'])} then {action}"
            for action in chance.sample(
                [f"update set {self.assignments()}", f"update set {self.assignments()}", "delete", "do nothing"],
                k=chance.randint(0, 3),
            )
        ]
        missing = [
            f"when not matched{chance.choice(['', ' and s.num < 7'])} then {action}"
            for action in chance.sample(
                [
                    f"insert {self.COLUMNS} values (s.id, s.part, s.other, s.num, s.body, s.amount::numeric)",
                    "do nothing",
                ],
                k=chance.randint(0, 2),
            )
        ]
        actions = matched + missing
        if self.conn.info.server_version >= 170000 and chance.random() < 0.4:
            action = chance.choice([f"update set {self.assignments()}", "delete"])
            actions.append(f"when not matched by source and {self.where()} then {action}")
        if not actions:
            actions = ["when matched then update set num = d.num + 1"]
        # PostgreSQL refuses a clause after an unconditional one of the same kind.
        actions.sort(key=lambda action: " and " not in action.split(" then ")[0])
        kinds: set[str] = set()
        kept = []
        for action in actions:
            head = action.split(" then ")[0]
            if head.split(" and ")[0] not in kinds:
                kept.append(action)
            if " and " not in head:
                kinds.add(head)
        return f"merge into {self.only()}{name} d using {source} {' '.join(kept)}"

    def with_parts(self) -> str:
        """A statement whose WITH clause changes rows."""
        chance = self.chance
        kinds = [self.insert, self.update, self.delete]
        if self.conn.info.server_version >= 170000:
            kinds.append(self.merge)
        parts = [f"w{n} as ({chance.choice(kinds)()} returning *)" for n in range(chance.randint(1, 2))]
        last = chance.choice([self.insert, self.update, self.delete, self.merge, lambda: "select count(*) from w0"])
        if chance.random() < 0.3:
            self.number += 100
            return (
                f"with gone as (delete from {self.name()} d where {self.where()} returning d.*)"
                f" insert into {self.names[0]} {self.COLUMNS}"
                f" select id + {self.number}, {self.part(self.names[0])}, num, body, amount from gone"
            )
        return f"with {', '.join(parts)} {last()}"

    def cascade_change(self) -> str:
        chance = self.chance
        return chance.choice(
            [
                f"delete from public.author where num = {chance.randrange(10)}",
                f"update public.author set num = num + 10 where num = {chance.randrange(10)}",
                "insert into public.author select generate_series(0, 9) on conflict do nothing",
                "insert into public.author select generate_series(0, 9) on conflict do nothing",
            ]
        )

    def note(self) -> str:
        return f"insert into public.note select id, part, other from public.doc d where {self.where()}"

    def block(self) -> str:
        """Changes in a DO block. Half of the blocks raise an error, whose handler makes the third change."""
        changes = [self.update(), self.insert(), self.delete()]
        self.chance.shuffle(changes)
        return (
            f"do $$ begin {changes[0]}; begin {changes[1]}; perform 1 / {self.chance.randrange(2)};"
            f" exception when division_by_zero then {changes[2]}; end; end $$"
        )

    def cursor(self) -> str:
        name = self.name()
        return (
            f"do $$ declare c cursor for select * from {name} d where {self.where()} for update; r record;"
            f" begin open c; fetch c into r; if found then update {name} set body = {self.body()}"
            f" where current of c; end if; close c; end $$"
        )

    def several(self) -> str:
        """Run three statements in a transaction, and roll some of them back. Return an UPDATE."""
        kinds = [self.insert, self.update, self.delete, self.merge, self.upsert, self.truncate, self.copy]
        with self.conn.transaction():
            for kind in self.chance.choices(kinds, k=3):
                with self.conn.transaction(force_rollback=self.chance.random() < 0.5):
                    self.run(kind())
        return self.update()

    def change_parts(self) -> str:
        """A statement that attaches or detaches a table of ``LATE``, or an UPDATE if the source can't have such tables.

        Without event triggers, the method itself creates an empty partition, and returns an INSERT.
        """
        chance = self.chance
        if self.shape == "plain" or not (self.watched or self.moves):
            return self.update()
        late = self.late_tables()
        number = 101 + len(late)
        if late and self.watched and chance.random() < 0.7:
            number = 101 + chance.randrange(len(late))
        name = f"public.late_{number - 100}"
        below = late.get(name, False)
        rows = f"({number}, {number}, 1, {chance.randrange(10)}, {self.body()}, {self.amount()})"
        bounds = f"for values in ({number})"
        if not self.watched:
            self.conn.execute(f"create table {name} partition of public.doc {bounds}")
            return f"insert into public.doc {self.COLUMNS} values {rows}"
        if name not in late:
            self.conn.execute(f"create table {name} (like public.doc including all)")
            self.conn.execute(f"insert into {name} {self.COLUMNS} values {rows}")
            if self.secured:
                self.conn.execute(f"grant all on {name} to {self.limited}")
        if self.moves:
            return f"alter table doc {'detach' if below else 'attach'} partition {name}{'' if below else ' ' + bounds}"
        return f"alter table {name} {'no ' if below else ''}inherit doc"

    def copy(self) -> str:
        return "copy"

    def statements(self) -> list[tuple[Callable[[], str], int]]:
        """The kinds of statements that suit the table, each with its relative frequency."""
        kinds: list[tuple[Callable[[], str], int]] = [
            (self.insert, 20),
            (self.insert_select, 5),
            (self.upsert, 10),
            (self.update, 14),
            (self.update_from, 6),
            (self.delete, 6),
            (self.truncate, 3),
            (self.merge, 25),
            (self.with_parts, 12),
            (self.block, 3),
            (self.copy, 3),
            (self.several, 4),
            (self.change_parts, 8),
        ]
        if not self.moves:
            kinds.append((self.cursor, 2))
        if self.cascade:
            kinds.append((self.cascade_change, 6))
            if self.shape != "heirs":
                kinds.append((self.note, 2))
        return kinds

    def run(self, statement: str) -> None:
        if statement != "copy":
            self.conn.execute(statement)
            return
        name = self.name()
        rows = [self.row(name) for _ in range(self.chance.randint(1, 20))]
        with self.conn.cursor().copy(f"copy {name} {self.COLUMNS} from stdin with (format csv, quote '''')") as copy:
            copy.write("\n".join(rows).replace(", null", ","))

    def settle(self) -> None:
        """Backfill and combine everything. Raises Wrong if view and query differ, or if ``verify`` finds a problem."""
        if self.rollup is None:
            self.make_rollup()
        assert self.rollup
        self.rollup.call(self.conn, "backfill", "drain")
        self.compare("combining")
        if told := [problem for problem in self.rollup.verify(self.conn) if self.watched or "late_" not in problem]:
            raise Wrong(f"{self}\nverify: {told}")

    def compare_snapshot(self, conn: psycopg.Connection) -> bool:
        """Compare in the snapshot of ``conn``. Returns whether the snapshot could be compared. Raises Wrong."""
        if found := self.differing(conn, old=True):
            raise Wrong(f"{self}\nview and query differ in an older snapshot:\n{found}")
        return found is not None

    def compare(self, after: str) -> None:
        if found := self.differing(self.conn):
            raise Wrong(f"{self}\nview and query differ after {after}:\n{found}")

    def __str__(self) -> str:
        on = [name for name in ("virtual", "cascade", "meddler", "secured", "watched") if getattr(self, name)]
        return f"{self.shape} table ({', '.join(on) or 'no options'}): {self.rollup}"


@contextmanager
def circumstances(table: Table) -> Iterator[None]:
    """Run the block with a random choice of role, isolation level, transaction, savepoint and rollback.

    A transaction compares view and query at its end. Raises Wrong.
    """
    conn, chance = table.conn, table.chance
    how = chance.random()
    try:
        if table.secured and chance.random() < 0.4:
            conn.execute(f"set role {table.limited}")
        if how < 0.6:
            yield
            return
        if how < 0.75:
            conn.execute(f"set default_transaction_isolation = '{chance.choice(['repeatable read', 'serializable'])}'")
        with conn.transaction(force_rollback=how > 0.9):
            if 0.8 < how < 0.95:
                with conn.transaction():
                    yield
            else:
                yield
            conn.execute("reset role")
            table.compare("in the transaction")
    finally:
        conn.execute("reset default_transaction_isolation")
        conn.execute("reset role")


def change(table: Table, name: str | None = None, *, alone: bool = True) -> str:
    """Run a random statement, or one of the kind ``name``. Returns its kind, with " refused" if it was refused.

    Unless the session is ``alone``, the statement may also fail because of other sessions.
    """
    kinds = {kind.__name__: weight for kind, weight in table.statements()}
    if not alone:
        del kinds["change_parts"]  # one session of a crowd runs this kind, by ``name``
    name = name or table.chance.choices(list(kinds), list(kinds.values()))[0]
    statement = ""
    try:
        with circumstances(table):
            statement = getattr(table, name)()
            table.run(statement)
    except REFUSALS:
        return f"{name} refused"
    except psycopg.Error as error:
        rivals = not alone and isinstance(error, RIVALRY)
        if not rivals and "needs isolation level read committed" not in str(error):
            raise Wrong(f"{table}\n{statement}\nfailed: {error}") from error
        return f"{name} refused"
    finally:
        if name == "change_parts":
            table.learn_names()
    return name


def run(table: Table, statements: int, snapshot: psycopg.Connection) -> Counter[str]:
    """Run statements on the table, with changes of the rollup between them, and compare. Raises Wrong.

    Returns how often each kind was run or refused, and how many snapshots were compared in the session ``snapshot``.
    """
    done: Counter[str] = Counter()
    taken = None
    snapshot.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    for _ in range(statements):
        said = change(table)
        done[said] += 1
        table.compare(said)
        if table.chance.random() < 0.3:
            table.keep_up()
            table.compare("upkeep")
        if taken is None and table.chance.random() < 0.3:
            snapshot.execute("select pg_current_snapshot()")
            taken = table.rollup
        elif taken and table.chance.random() < 0.3:
            if taken == table.rollup:
                done["compared snapshots"] += table.compare_snapshot(snapshot)
            snapshot.rollback()
            taken = None
    table.settle()
    return done


@dataclass
class Crowd:
    """Sessions at work on a table.

    ``done`` has the counts of each session. ``over`` is set when a session or the block of ``crowd`` has ended.
    """

    done: list[Counter[str]]
    over: threading.Event

    @property
    def total(self) -> Counter[str]:
        return sum((counter.copy() for counter in self.done), Counter())

    def fewer_than(self, changes: int, snapshots: int) -> bool:
        """Whether no session has ended, and all together made fewer changes or compared fewer snapshots than given."""
        total = self.total
        made = sum(times for name, times in total.items() if " " not in name)
        return not self.over.is_set() and (made < changes or total["compared snapshots"] < snapshots)


@contextmanager
def crowd(table: Table, dsn: str, writers: int) -> Iterator[Crowd]:
    """Run sessions that change rows during the block, and one that compares snapshots.

    The end of the block raises the first error of a session, such as Wrong after a comparison.
    """
    seed = table.chance.random()
    all_of_them = Crowd([Counter() for _ in range(writers + 1)], threading.Event())

    def connect() -> psycopg.Connection:
        return psycopg.connect(dsn, autocommit=True, options="-c search_path=public -c deadlock_timeout=20")

    def write(number: int) -> None:
        with connect() as conn:
            mine = replace(table, conn=conn, chance=random.Random(f"{seed} {number}"), rollup=None)
            while not all_of_them.over.is_set():
                all_of_them.done[number][change(mine, alone=False)] += 1

    def look() -> None:
        with connect() as now, connect() as then:
            then.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            while not all_of_them.over.is_set():
                with suppress(psycopg.errors.UndefinedTable, psycopg.OperationalError), then.transaction():
                    then.execute("select pg_current_snapshot()")
                    seen = replace(table, conn=now)  # keeps its rollup if ``table`` gets another one
                    all_of_them.over.wait(random.random() / 20)
                    all_of_them.done[-1]["compared snapshots"] += seen.compare_snapshot(then)

    def until_over(call: Callable[[], None]) -> None:
        try:
            call()
        finally:
            all_of_them.over.set()

    calls = [look, *[partial(write, number) for number in range(writers)]]
    with in_background(*[partial(until_over, call) for call in calls]):
        try:
            yield all_of_them
        finally:
            all_of_them.over.set()
