"""Random statements on attached tables; after each of them the queue must have what a recount of the table gives.

``python -m tests.sql.rollup.attached_statements --statements 10000 --seed 7`` starts an embedded server of its own (or
takes ``--dsn``, a database with pgcombine's schema), and runs so many statements, a few hundred on each of a number of
random tables: by themselves, with partitions of partitions, with tables that inherit, partitions and heirs attached by
themselves; with stored and virtual generated columns, foreign keys that cascade, triggers that change and drop rows,
row security. The statements are of every kind that changes rows, and name the table or one below or above it. Some run
in transactions that roll back, or under another isolation level.

The recount is made in Python from the rows of the table. After each statement the pending updates count as well; at the
end of each table they are combined, and ``verify`` recounts. One line on what was run; status 1 if anything differs.
"""

# ruff: noqa: S608

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

sys.path.insert(0, str(Path(__file__).parents[2]))

from support.queues import combine_all, make_queue

Counts = dict[str, tuple[int, int, Decimal]]
MAPPING = """
select word, num as n, doc.amount as size
from regexp_split_to_table(doc.body || ' ' || doc.low || ' ' || {virtual}, ' ') word
where word <> '' -- the words of all texts"""
WORDS = ["a", "B", "c", "D", "e"]
SHAPES = ["plain", "partitioned", "deep", "leaf", "branch", "heirs", "heir"]
# what a statement may fail with: it changes nothing then
REFUSALS = (
    psycopg.errors.IntegrityError,
    psycopg.errors.CardinalityViolation,  # a MERGE or an ON CONFLICT that changes a row twice
    psycopg.errors.InsufficientPrivilege,  # row security
    psycopg.errors.FeatureNotSupported,  # COPY under row security
    psycopg.errors.TriggeredDataChangeViolation,
    psycopg.errors.ObjectNotInPrerequisiteState,
)


class Wrong(Exception):
    """The queue has something else than the table."""


@dataclass
class Table:
    """An attached table: what statements may name, and which options it has."""

    conn: psycopg.Connection
    chance: random.Random
    shape: str
    virtual: bool
    cascade: bool
    meddler: bool
    secured: bool
    source: str = "public.doc"
    names: list[str] = field(default_factory=list)  # whose statements change the source, or others beside it
    number: int = 0
    moves: bool = False
    late: int = 0

    @classmethod
    def make(cls, conn: psycopg.Connection, chance: random.Random, shape: str | None = None, **options: bool) -> Table:
        """A random table, attached to the queue ``words``, with rows in it; ``options`` fix some of what is random."""
        chosen = {
            name: options.get(name, chance.random() < 0.4) for name in ("virtual", "cascade", "meddler", "secured")
        }
        chosen["virtual"] = chosen["virtual"] and conn.info.server_version >= 180000
        table = cls(conn, chance, shape or chance.choice(SHAPES), **chosen)
        conn.execute("select pgcombine.drop_queue(queue, force => true) from pgcombine.queue where queue = 'words'")
        conn.execute("drop schema public cascade; create schema public; grant usage on schema public to public")
        conn.execute("set search_path = public")
        table._create()
        make_queue(
            conn,
            "words",
            key=["word text"],
            value=["n bigint sum", "docs int count", "size numeric sum"],
            delete_when="n = 0 and docs = 0 and size = 0" if chance.random() < 0.5 else None,
            buckets=2,
        )
        for _ in range(3):
            conn.execute(table.insert(table.source if table.shape not in ("leaf", "branch") else "public.root"))
        mapping = MAPPING.format(virtual="doc.virt" if table.virtual else "''")
        alias = table.source.split(".")[1]
        conn.execute("select pgcombine.attach('words', %s, %s)", (table.source, mapping.replace("doc.", f"{alias}.")))
        if table.secured:
            table._secure()
        return table

    def _create(self) -> None:
        run, chance = self.conn.execute, self.chance
        columns = "id int not null, part int not null default 0, other int not null default 0, num int, body text"
        columns += ", amount numeric(12, 2), low text generated always as (lower(body)) stored"
        if self.virtual:
            columns += ", virt text generated always as (upper(body) || ' v') virtual"
        if self.cascade:
            run("create table public.author (num int primary key)")
            run("insert into public.author select generate_series(0, 9)")
        if self.shape == "plain":
            run(f"create table public.doc ({columns})")
            self.names = ["public.doc"]
        elif self.shape in ("heirs", "heir"):
            run(f"create table public.{'doc' if self.shape == 'heirs' else 'root'} ({columns})")
            base = "doc" if self.shape == "heirs" else "root"
            run(f"create table public.heir_1 (extra int default 1) inherits (public.{base})")
            run("create table public.heir_2 () inherits (public.heir_1)")
            run(f"create table public.heir_3 () inherits (public.{base})")
            run("alter table public.heir_2 add column more text")
            self.names = [f"public.{base}", "public.heir_1", "public.heir_2", "public.heir_3"]
            self.source = f"public.{'doc' if self.shape == 'heirs' else 'heir_1'}"
        else:
            root = {"leaf": "root", "branch": "root"}.get(self.shape, "doc")
            self.moves = True
            run(f"create table public.{root} ({columns}) partition by list (part)")
            self.names = [f"public.{root}", "public.part_0", "public.part_1"]
            run(f"create table public.part_0 partition of public.{root} for values in (0)")
            # another order of columns, with a dropped one
            run(f"create table public.part_1 (gone int, {', '.join(reversed(split_columns(columns)))})")
            run("alter table public.part_1 drop column gone")
            run(f"alter table public.{root} attach partition public.part_1 for values in (1)")
            if self.shape == "partitioned":
                run(f"create table public.part_2 partition of public.{root} default")
                self.names.append("public.part_2")
            else:
                kind = chance.choice(["hash", "range"])
                run(f"create table public.part_2 partition of public.{root} default partition by {kind} (other)")
                for n in range(2):
                    bound = f"with (modulus 2, remainder {n})" if kind == "hash" else f"from ({n * 2}) to ({n * 2 + 2})"
                    run(f"create table public.part_2{n} partition of public.part_2 for values {bound}")
                self.names += ["public.part_2", "public.part_20", "public.part_21"]
            self.source = {"leaf": "public.part_1", "branch": "public.part_2"}.get(self.shape, "public.doc")
        for name in self.names if self.shape in ("heirs", "heir") else self.names[:1]:
            run(f"alter table {name} add primary key (id, part, other)")
            if self.cascade:
                actions = chance.choice(["cascade", "set null"]), chance.choice(["cascade", "set null"])
                run(
                    f"alter table {name} add foreign key (num) references public.author"
                    f" on delete {actions[0]} on update {actions[1]}"
                )
        if self.cascade and self.shape in ("plain", "partitioned", "deep"):
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
            for name in self.names if self.shape in ("heirs", "heir") else self.names[:1]:
                events = chance.choice(["insert", "insert or update or delete"])
                run(f"create trigger meddle before {events} on {name} for each row execute function public.meddle()")

    def _secure(self) -> None:
        """A role that sees, and may change, only some of the rows."""
        run = self.conn.execute
        run(f"create role {self.limited}")
        run(f"grant all on all tables in schema public to {self.limited}")
        run(f"grant insert on pgcombine.words_updates to {self.limited}")
        for name in self.names:
            run(f"alter table {name} enable row level security")
            run(f"create policy seen on {name} using (num is distinct from 1) with check (true)")

    @property
    def limited(self) -> str:
        return f"pgcombine_limited_{self.conn.info.backend_pid}"

    def close(self) -> None:
        """Roles outlive databases."""
        if self.secured:
            self.conn.execute(f"drop owned by {self.limited}; drop role {self.limited}")

    # parts of statements

    def name(self) -> str:
        """A table to name: mostly the uppermost."""
        return self.names[0] if self.chance.random() < 0.6 else self.chance.choice(self.names)

    def only(self) -> str:
        return "only " if self.chance.random() < 0.2 and self.shape in ("plain", "heirs", "heir") else ""

    def body(self) -> str:
        chosen = self.chance.choices(WORDS, k=self.chance.randrange(4))
        return "null" if self.chance.random() < 0.05 else f"'{' '.join(chosen)}'"

    def part(self, name: str | None = None) -> str:
        """The values of part and other for a row; those that the table takes, mostly."""
        chance = self.chance
        given = {"public.part_0": [0], "public.part_1": [1]}.get(name or "", [0, 1, 2, 3])
        if name and name.startswith("public.part_2"):
            given = [2, 3]
        others = range(2) if name == "public.part_20" else range(2, 4) if name == "public.part_21" else range(4)
        if chance.random() < 0.03 and self.moves:
            return f"{chance.randrange(4)}, {chance.randrange(4)}"
        return f"{chance.choice(given) if self.moves else 0}, {chance.choice(others)}"

    def row(self, name: str | None = None, *, new: bool = True) -> str:
        """id, part, other, num, body, amount."""
        self.number += new
        number = self.number if new else self.chance.randint(0, self.number)
        amount = self.chance.randint(-999, 999) / 100
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
            {"amount": f"{row}.amount + 1"},
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
        # the key of parents isn't that of the tables that inherit
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
        only = "only " if self.chance.random() < 0.4 and self.shape in ("plain", "heirs", "heir") else ""
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
                [f"insert {self.COLUMNS} values (s.id, s.part, s.other, s.num, s.body, s.amount)", "do nothing"],
                k=chance.randint(0, 2),
            )
        ]
        actions = matched + missing
        if self.conn.info.server_version >= 170000 and chance.random() < 0.4:
            action = chance.choice([f"update set {self.assignments()}", "delete"])
            actions.append(f"when not matched by source and {self.where()} then {action}")
        if not actions:
            actions = ["when matched then update set num = d.num + 1"]
        # an action without a condition ends the list of its kind
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
        """A statement of two or three that change rows."""
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
        """Statements one after the other in a function, one of them caught."""
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

    def new_partition(self) -> str:
        """One that comes late, and may go when it is empty."""
        if self.shape not in ("partitioned", "deep"):
            return self.update()
        self.late += 1
        name = f"public.late_{self.late}"
        number = 100 + self.late
        self.conn.execute(f"create table {name} partition of public.doc for values in ({number})")
        if self.secured:
            self.conn.execute(f"grant all on {name} to {self.limited}")
        made = f"insert into {self.chance.choice([name, 'public.doc'])} {self.COLUMNS} values"
        row = self.row().split(", ")
        made += f" ({', '.join([row[0], str(number), *row[2:]])})"
        if self.chance.random() < 0.5:
            self.conn.execute("select pgcombine_internal.regenerate('words')")
            self.names.append(name)
        return made

    def copy(self) -> str:
        return "copy"

    def statements(self) -> list[tuple[Callable[[], str], int]]:
        """All kinds of statements, and how often they come."""
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
            (self.new_partition, 3 if self.moves else 0),
        ]
        if not self.moves:
            kinds.append((self.cursor, 2))
        if self.cascade:
            kinds.append((self.cascade_change, 6))
            if self.shape in ("plain", "partitioned", "deep"):
                kinds.append((self.note, 2))
        return kinds

    def run(self, statement: str) -> None:
        if statement != "copy":
            self.conn.execute(statement)
            return
        name = self.name()
        rows = [self.row(name) for _ in range(self.chance.randint(1, 20))]
        with self.conn.cursor().copy(f"copy {name} {self.COLUMNS} from stdin with (format csv, quote '''')") as copy:
            copy.write("\n".join(rows).replace("null", ""))

    def recounted(self) -> Counts:
        counts: dict[str, list[Any]] = {}
        virtual = "virt" if self.virtual else "''"
        columns = f"select num, amount, body || ' ' || low || ' ' || {virtual} from {self.source}"
        for num, amount, text in self.conn.execute(columns):
            for word in (text or "").split():
                found = counts.setdefault(word, [0, 0, Decimal(0)])
                found[0] += num or 0
                found[1] += 1
                found[2] += amount or 0
        return {word: (n, docs, size) for word, (n, docs, size) in counts.items() if docs}

    def queued(self, relation: str = "words_current") -> Counts:
        found = self.conn.execute(
            sql.SQL("select word, coalesce(n, 0), docs, coalesce(size, 0) from {}").format(
                sql.Identifier("pgcombine", relation)
            )
        )
        return {word: (n, docs, size) for word, n, docs, size in found if (n, docs, size) != (0, 0, 0)}

    def compare(self, after: str, relation: str = "words_current") -> None:
        should, found = self.recounted(), self.queued(relation)
        if should != found:
            differ = {
                w: (found.get(w), should.get(w)) for w in sorted({*should, *found}) if found.get(w) != should.get(w)
            }
            raise Wrong(f"{self}\nafter: {after}\n(queue, recount): {differ}")

    def __str__(self) -> str:
        on = [option for option in ("virtual", "cascade", "meddler", "secured") if getattr(self, option)]
        return f"{self.shape} table {self.source} ({', '.join(on) or 'no options'})"


def split_columns(columns: str) -> list[str]:
    """The definitions in a list of columns."""
    return columns.replace("numeric(12, 2)", "numeric(12; 2)").replace("; 2", ",2").split(", ")


@contextmanager
def circumstances(table: Table) -> Iterator[None]:
    """Run what follows as another role, under another isolation level, rolled back, after a savepoint…"""
    conn, chance = table.conn, table.chance
    limited = table.secured and chance.random() < 0.4
    try:
        if limited:
            conn.execute(f"set role {table.limited}")
        how = chance.random()
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
    finally:
        conn.execute("reset default_transaction_isolation")
        conn.execute("reset role")


def run(table: Table, statements: int) -> Counter[str]:
    """So many statements on one table; what was run, and how much of it was refused. Raises Wrong."""
    try:
        return _run(table, statements)
    finally:
        table.close()


def _run(table: Table, statements: int) -> Counter[str]:
    done: Counter[str] = Counter()
    kinds, weights = zip(*table.statements(), strict=True)
    for number in range(statements):
        kind = table.chance.choices(kinds, weights)[0]
        statement = kind()
        name = statement.split(" ", 1)[0] if kind != table.with_parts else "with"
        try:
            with circumstances(table):
                table.run(statement)
            done[name] += 1
        except REFUSALS:
            done[f"{name} refused"] += 1
        except psycopg.Error as error:
            if error.sqlstate != "PC003":
                raise Wrong(f"{table}\n{statement}\nfailed: {error}") from error
            done[f"{name} not attachable"] += 1
        table.compare(statement)
        if number % 40 == 39:
            combine_all(table.conn, "words")
    combine_all(table.conn, "words")
    table.compare("combining", "words_values")
    told = table.conn.execute("select problem from pgcombine.verify('words', recount => true)").fetchall()
    told = [problem for (problem,) in told if not ("late_" in problem and "missing" in problem)]
    if told:
        raise Wrong(f"{table}\nverify: {told}")
    return done


def run_many(conn: psycopg.Connection, seed: int, statements: int, each: int = 250) -> Counter[str]:
    """So many statements in all, ``each`` on a table; all shapes come in turn."""
    done: Counter[str] = Counter()
    for number in range(-(-statements // each)):
        chance = random.Random(f"{seed} {number}")
        table = Table.make(conn, chance, SHAPES[number % len(SHAPES)])
        try:
            done += run(table, min(each, statements - number * each))
        except Wrong as wrong:
            raise Wrong(f"seed {seed}, table {number}: {wrong}") from wrong
    return done


def main() -> int:
    from support.servers import embedded

    from pgcombine import schema

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--statements", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--dsn", help="a database that may be spoilt (default: a server of its own)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        server = embedded(Path(home), {"fsync": "off"})
        dsn = given.dsn or server.__enter__()
        try:
            schema.upgrade(dsn)
            with psycopg.connect(dsn, autocommit=True) as conn:
                done = run_many(conn, given.seed, given.statements)
        except Wrong as wrong:
            print(wrong)
            return 1
        finally:
            if not given.dsn:
                server.__exit__(None, None, None)
    print(f"seed {given.seed}: {done.total()} statements, all right: {dict(sorted(done.items()))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
