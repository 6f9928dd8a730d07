"""``attach``: a user's table feeds a queue; the reference's word index, and what may happen to a table."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psycopg
import pytest
from support import run_cli
from support.queues import write_values
from support.servers import embedded_only
from support.sessions import in_background, waits
from support.wait import eventually

from pgcombine.errors import InvalidDefinitionError, NotGrantedError, QueueExistsError, QueueNotEmptyError
from pgcombine.queue.combine_queue import CombineQueue
from pgcombine.worker.drain import drain

WORDS = CombineQueue("words", key=["word text"], value=["n bigint sum"], delete_when="n = 0", buckets=7)
MAPPING = r"select word, 1 as n from regexp_split_to_table(body, '\W+') word where word <> ''"


@pytest.fixture
def docs(conn: psycopg.Connection) -> psycopg.Connection:
    conn.execute("create table public.doc (id int primary key, body text, other int)")
    WORDS.create(conn)
    return conn


def recount(conn: psycopg.Connection, table: str = "public.doc") -> dict[str, int]:
    counts: Counter[str] = Counter()
    for (body,) in conn.execute(f"select body from {table}"):  # noqa: S608
        counts.update((body or "").split())
    return dict(counts)


def index(conn: psycopg.Connection, relation: str = "words_current") -> dict[str, int]:
    return dict(conn.execute(f"select word, n from pgcombine.{relation}").fetchall())  # noqa: S608


def test_word_index_equals_a_recount_at_each_step(docs: psycopg.Connection, dsn: str) -> None:
    WORDS.attach(docs, "public.doc", MAPPING)
    steps = [
        "insert into doc values (1, 'the quick brown fox'), (2, 'the lazy dog'), (3, 'dog eat dog'), (4, 'fox')",
        "update doc set body = 'the slow brown fox' where id = 1",
        "update doc d set body = o.body from doc o where d.id + o.id = 5",  # swaps 1 with 4 and 2 with 3
        "update doc set body = null where id = 2",
        "update doc set body = 'back again' where id = 2",
        "delete from doc where id in (1, 3)",
        "update doc set other = 1",
        "insert into doc values (4, 'fox'), (5, 'new') on conflict (id) do update set body = excluded.body || ' twice'",
        "insert into doc values (4, 'no'), (6, 'six') on conflict do nothing",
        "with gone as (delete from doc where id = 6 returning *) insert into doc select 7, body from gone",
        "truncate doc",
    ]
    docs.execute("set search_path = public")
    for step in steps:
        docs.execute(step)
        assert index(docs) == recount(docs), step
        drain(dsn, "words", timeout=30)
        assert index(docs, "words_values") == recount(docs), step


def test_word_index_stress(docs: psycopg.Connection, dsn: str) -> None:
    WORDS.attach(docs, "public.doc", MAPPING)
    chance = random.Random(11)
    vocabulary = [f"w{i}" for i in range(300)]

    def body() -> str:
        return " ".join(chance.choices(vocabulary, k=chance.randrange(40)))

    with docs.cursor().copy("copy public.doc (id, body) from stdin") as copy:
        for number in range(1000):
            copy.write_row((number, body()))
    assert index(docs) == recount(docs)
    drain(dsn, "words", timeout=60)
    for edit in range(100):
        number = chance.randrange(1000)
        if edit % 10 == 9:
            docs.execute("delete from public.doc where id = %s", (number,))
        else:
            docs.execute("update public.doc set body = %s where id = %s", (body(), number))
        if edit % 20 == 0:
            assert index(docs) == recount(docs)
    drain(dsn, "words", timeout=60)
    assert index(docs, "words_values") == recount(docs)


def test_an_edit_enqueues_the_difference(docs: psycopg.Connection) -> None:
    docs.execute("insert into public.doc values (1, 'a b c a')")
    WORDS.attach(docs, "public.doc", MAPPING, existing=False)
    docs.execute("update public.doc set body = 'a b c d' where id = 1")
    assert sorted(docs.execute("select * from pgcombine.words_pending").fetchall()) == [("a", -1), ("d", 1)]


def test_rows_that_are_there_and_rollback(docs: psycopg.Connection) -> None:
    docs.execute("insert into public.doc values (1, 'a b')")
    WORDS.attach(docs, "public.doc", MAPPING)
    assert index(docs) == {"a": 1, "b": 1}
    with docs.transaction(force_rollback=True):
        docs.execute("truncate public.doc")
        assert index(docs) == {}
    assert index(docs) == {"a": 1, "b": 1}


def test_the_mapping_means_the_same_on_any_search_path(docs: psycopg.Connection) -> None:
    docs.execute("create function public.words(text) returns setof text language sql return string_to_table($1, ' ')")
    docs.execute("create schema other")
    docs.execute("create function other.words(text) returns setof text language sql return 'wrong'::text")
    docs.execute("create table other.doc as table doc")
    docs.execute("set search_path = public")
    WORDS.attach(docs, "doc", "select word, 1 as n from words(body) word")
    for path in ("other", "", "other, public"):
        docs.execute("select set_config('search_path', %s, false)", (path,))
        docs.execute("insert into public.doc values (1, 'a b'), (2, 'b')")
        assert index(docs) == {"a": 1, "b": 2}
        assert docs.execute("show search_path").fetchone() == (path,)
        docs.execute("update public.doc set body = 'a c' where id = 1")
        docs.execute("delete from public.doc where id = 2")
        assert index(docs) == {"a": 1, "c": 1}
        docs.execute("truncate public.doc")
        assert index(docs) == {}


def test_names_that_stumble_and_change(docs: psycopg.Connection) -> None:
    """A renamed table is still itself: its name may be another's by now."""
    table = '"odd %s"."The ""docs"" %s"'  # without parameters, % stands for itself
    docs.execute('create schema "odd %s"')
    docs.execute(f'create table {table} (id int, "body %" text)')
    WORDS.attach(docs, table, """select "body %" as word, 1 as n where "body %" not like 'x%'""")
    docs.execute(f"insert into {table} values (1, 'a'), (2, 'xy')")  # noqa: S608
    assert index(docs) == {"a": 1}
    docs.execute(f"alter table {table} set schema public")
    docs.execute('alter table "The ""docs"" %s" rename to kept')
    docs.execute(f"create table {table} as table kept")
    docs.execute(f"insert into {table} values (1, 'b')")  # noqa: S608
    docs.execute("truncate kept")
    assert index(docs) == {}


@pytest.fixture
def parted(conn: psycopg.Connection) -> psycopg.Connection:
    """A table with partitions, attached; the source path is public."""
    conn.execute("set search_path = public")
    conn.execute("create table doc (id int, body text) partition by list (id)")
    conn.execute("create table doc_1 partition of doc for values in (1)")
    conn.execute("create table doc_2 partition of doc for values in (2)")
    WORDS.create(conn)
    WORDS.attach(conn, "doc", MAPPING)
    return conn


def test_partitioned_table(parted: psycopg.Connection) -> None:
    parted.execute("insert into doc values (1, 'a b'), (2, 'b c')")
    assert index(parted) == recount(parted)
    parted.execute("update doc set id = 2, body = 'moved' where id = 1")
    assert index(parted) == recount(parted)
    parted.execute("truncate doc")
    assert index(parted) == {}


def test_statements_that_name_a_partition(parted: psycopg.Connection) -> None:
    for step in (
        "insert into doc_1 values (1, 'a b')",
        "insert into doc_2 values (2, 'b c'), (2, 'd')",
        "update doc_2 set body = 'e' where body = 'd'",
        "delete from doc_2 where body = 'e'",
        "truncate doc_1",
        "truncate doc_2, doc_1",
    ):
        parted.execute(step)
        assert index(parted) == recount(parted), step


@pytest.mark.parametrize("insert", ["", "when not matched then insert values (s.id, 'new')"])
def test_a_merge_moves_a_row_between_partitions(parted: psycopg.Connection, insert: str) -> None:
    parted.execute("insert into doc values (1, 'a b'), (2, 'b c')")
    parted.execute(
        "merge into doc using (values (1), (3 - 1)) s (id) on doc.id = s.id and doc.body like 'a%'"
        f" when matched then update set id = 2, body = 'moved' {insert}"
    )
    assert index(parted) == recount(parted)
    assert "moved" in index(parted)


def test_partitions_that_come_after_attach(parted: psycopg.Connection) -> None:
    """Their rows are enqueued, and taken back where their parent is truncated; their own TRUNCATE needs a trigger."""
    parted.execute("create table doc_3 partition of doc for values in (3)")
    parted.execute("insert into doc values (1, 'a'), (3, 'b')")
    parted.execute("insert into doc_3 values (3, 'b')")
    assert index(parted) == recount(parted) == {"a": 1, "b": 2}
    assert WORDS.verify(parted) == [
        "trigger pgcombine_words_truncate of the attached table doc_3 is missing: run pgcombine db upgrade"
    ]
    parted.execute("truncate doc")
    assert index(parted) == {}
    parted.execute("insert into doc values (1, 'a'), (3, 'b')")
    parted.execute("select pgcombine_internal.regenerate('words')")
    assert WORDS.verify(parted) == []
    parted.execute("truncate doc_3")
    assert index(parted) == recount(parted) == {"a": 1}


def test_a_recount_leaves_out_what_has_expired(conn: psycopg.Connection, dsn: str) -> None:
    visits = CombineQueue("visits", key=["day date"], value=["n bigint sum"], delete_when="n = 0")
    conn.execute("create table public.visit (id int, at date)")
    visits.create(conn)
    visits.attach(conn, "public.visit", "select at as day, 1 as n")
    conn.execute("insert into visit select g, current_date - g from generate_series(0, 9) g")
    drain(dsn, "visits", timeout=30)
    conn.execute("select pgcombine.set_expiry('visits', 'day <= current_date - 5')")
    assert visits.verify(conn, recount=True) == []
    conn.execute("call pgcombine.expire('visits')")
    conn.execute("delete from visit where id in (1, 8)")  # the update for the older day is late
    drain(dsn, "visits", timeout=30)
    assert conn.execute("select count(*), min(n) from pgcombine.visits_values").fetchall() == [(4, 1)]
    assert visits.verify(conn, recount=True) == []
    write_values(conn, "update pgcombine.visits_values set n = 7 where day = current_date")
    assert len(visits.verify(conn, recount=True)) == 2


def test_a_recount_beside_a_truncate_names_no_key(parted: psycopg.Connection, dsn: str) -> None:
    """A snapshot from before it finds the table empty, and the values as they were. So does one that waits for it."""
    parted.execute("insert into doc values (1, 'a'), (2, 'b b')")
    with psycopg.connect(dsn) as other:
        other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        other.execute("select")
        parted.execute("truncate doc_2")
        with pytest.raises(psycopg.errors.SerializationFailure, match="doc_2 was truncated or rewritten") as refused:
            other.execute("select * from pgcombine.verify('words', recount => true)")
        assert refused.value.diag.message_hint == "verify again, in a new transaction"
    assert WORDS.verify(parted, recount=True) == []

    def verify() -> None:
        with psycopg.connect(dsn) as other:
            pids.append(other.info.backend_pid)
            with pytest.raises(psycopg.errors.SerializationFailure, match="was truncated or rewritten"):
                other.execute("select * from pgcombine.verify('words', recount => true)")

    pids: list[int] = []
    with psycopg.connect(dsn) as truncating:
        truncating.execute("truncate doc")
        with in_background(verify):
            eventually(lambda: pids)
            waits(parted, pids[0])
            truncating.commit()
    assert WORDS.verify(parted, recount=True) == []
    with psycopg.connect(dsn) as other:
        other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        other.execute("select")
        WORDS.rebucket(parted, 2)
        with pytest.raises(psycopg.errors.SerializationFailure, match="was truncated or rewritten"):
            other.execute("select * from pgcombine.verify('words', recount => true)")


def test_partitions_that_come_and_go_with_rows_are_named_by_a_recount(parted: psycopg.Connection) -> None:
    parted.execute("insert into doc values (1, 'a'), (2, 'b b')")
    parted.execute("alter table doc detach partition doc_2")
    assert WORDS.verify(parted) == []
    assert WORDS.verify(parted, recount=True) == [
        "1 key differs from a recount of doc: a trigger missed a change, or another program enqueues, too",
        "key (b): n is 2, recounted 0",
    ]
    parted.execute("alter table doc attach partition doc_2 for values in (2)")
    assert WORDS.verify(parted, recount=True) == []
    parted.execute("alter table doc detach partition doc_2")
    parted.execute("update doc_2 set body = 'c'")
    parted.execute("truncate doc_2")  # its rows are none of the queue's any more
    assert index(parted) == {"a": 1, "b": 2}
    WORDS.detach(parted, "doc")
    assert parted.execute("select from pg_trigger where tgrelid = 'doc_2'::regclass").fetchall() == []


def test_a_partition_by_itself(parted: psycopg.Connection) -> None:
    """Whichever table a statement names: that partition's rows count, and no others."""
    CombineQueue("one", key=["word text"], value=["n bigint sum"]).create(parted)
    CombineQueue("one").attach(parted, "doc_1", "select body as word, 1 as n")
    parted.execute("insert into doc values (1, 'a'), (1, 'b'), (2, 'c')")
    assert index(parted, "one_current") == {"a": 1, "b": 1}
    parted.execute("update doc set id = 3 - id where body in ('a', 'c')")
    assert index(parted, "one_current") | {"a": 0} == {"a": 0, "b": 1, "c": 1}
    parted.execute("truncate doc")
    assert set(index(parted, "one_current").values()) == {0}
    for again in ("doc", "doc_1"):
        with pytest.raises(QueueExistsError, match=r"is attached to doc(_1)? already"):
            WORDS.attach(parted, again, MAPPING)
    WORDS.detach(parted, "doc")
    WORDS.attach(parted, "doc_1", MAPPING)
    with pytest.raises(QueueExistsError, match="is attached to doc_1 already"):
        WORDS.attach(parted, "doc", MAPPING)


def test_who_may_read_the_parent_only_may_truncate_it(parted: psycopg.Connection) -> None:
    parted.execute("insert into doc values (1, 'a'), (2, 'b')")
    with role(parted, "grant select, truncate on doc to {0}; grant insert on pgcombine.words_updates to {0}") as name:
        parted.execute(f"set role {name}")
        parted.execute("truncate doc")
        parted.execute("reset role")
    assert index(parted) == {}


@pytest.fixture
def heirs(conn: psycopg.Connection) -> psycopg.Connection:
    """A table that others inherit from, attached, with a row in each."""
    conn.execute("set search_path = public")
    conn.execute("create table doc (id int, body text)")
    conn.execute("create table heir (extra text default 'x') inherits (doc)")
    conn.execute("create table grandchild () inherits (heir)")
    conn.execute("insert into doc values (1, 'a')")
    conn.execute("insert into heir values (2, 'b')")
    conn.execute("insert into grandchild values (3, 'c')")
    WORDS.create(conn)
    WORDS.attach(conn, "doc", MAPPING)
    return conn


def test_tables_that_inherit(heirs: psycopg.Connection) -> None:
    assert index(heirs) == recount(heirs) == {"a": 1, "b": 1, "c": 1}
    for step in (
        "truncate only doc",
        "insert into doc values (1, 'a')",
        "insert into heir values (2, 'd')",
        "update doc set body = body || ' e'",
        "update only heir set body = 'f'",
        "delete from doc where id = 3",
        "truncate heir",
        "insert into grandchild values (3, 'c')",
        "truncate doc",
    ):
        heirs.execute(step)
        assert index(heirs) == recount(heirs), step
    WORDS.detach(heirs, "doc")
    assert (
        heirs.execute("select from pg_trigger where tgname like 'pgcombine%%' and tgname like '%%words%%'").rowcount
        == 0
    )


@pytest.mark.parametrize("heirs", [False, True])
def test_a_table_that_others_inherit_from_after_attach(conn: psycopg.Connection, heirs: bool) -> None:
    """Its triggers can't tell: statements fail until they are made anew."""
    conn.execute("set search_path = public")
    conn.execute("create table doc (id int, body text)")
    if heirs:
        conn.execute("create table heir () inherits (doc)")
    WORDS.create(conn)
    WORDS.attach(conn, "doc", MAPPING)
    conn.execute("insert into doc values (1, 'a')")
    before = index(conn)
    conn.execute("create table late () inherits (doc)")
    for statement in (
        "insert into doc values (4, 'x')",
        "update doc set body = 'x'",
        "truncate doc",
        "truncate only doc",
    ):
        with pytest.raises(psycopg.Error, match="has begun to inherit or to be inherited from") as caught:
            conn.execute(statement)
        assert caught.value.sqlstate == "PC003"
    assert index(conn) == before
    assert any("missing" in problem for problem in WORDS.verify(conn))
    conn.execute("select pgcombine_internal.regenerate('words')")
    assert WORDS.verify(conn, recount=True) == []
    conn.execute("insert into late values (4, 'x')")
    conn.execute("insert into doc values (5, 'y')")
    conn.execute("update doc set body = body || ' z'")
    assert index(conn) == recount(conn)
    conn.execute("truncate only doc")
    assert index(conn) == recount(conn)


def test_a_table_that_becomes_a_partition(docs: psycopg.Connection) -> None:
    docs.execute("set search_path = public")
    WORDS.attach(docs, "doc", MAPPING)
    docs.execute("create table parent (id int not null, body text, other int) partition by list (id)")
    docs.execute("alter table parent attach partition doc for values in (1)")
    with pytest.raises(psycopg.Error, match="has begun to inherit"):
        docs.execute("insert into doc values (1, 'a')")
    docs.execute("select pgcombine_internal.regenerate('words')")
    docs.execute("insert into parent values (1, 'a')")
    docs.execute("update doc set body = 'a b'")
    assert index(docs) == {"a": 1, "b": 1}
    docs.execute("alter table parent detach partition doc")
    docs.execute("insert into doc values (2, 'c')")
    assert index(docs) == recount(docs)
    assert WORDS.verify(docs, recount=True) == []


@pytest.mark.parametrize("kind", ["stored", "virtual"])
@pytest.mark.parametrize("parts", ["", "partition by list (id)"])
def test_generated_columns(conn: psycopg.Connection, kind: str, parts: str) -> None:
    if conn.info.server_version < 180000:
        kind = "stored"  # there are no others
    conn.execute("set search_path = public")
    conn.execute(f"create table doc (id int, raw text, body text generated always as (upper(raw)) {kind}) {parts}")
    if parts:
        conn.execute(f"create table doc_1 (body text generated always as (upper(raw)) {kind}, raw text, id int)")
        conn.execute("alter table doc attach partition doc_1 for values in (1)")
        conn.execute("create table doc_2 partition of doc default")
    WORDS.create(conn)
    conn.execute("insert into doc values (1, 'old')")
    WORDS.attach(conn, "doc", MAPPING)
    conn.execute("set search_path = ''")
    for step in (
        "insert into public.doc values (1, 'a b'), (2, 'b')",
        "update public.doc set raw = 'c', id = 3 where raw = 'a b'",
        "merge into public.doc using (values (3)) v (x) on id = x when matched then update set id = 1, raw = 'd'",
        "delete from public.doc where raw = 'b'",
        "alter table public.doc add column more text",
        "insert into public.doc values (1, 'e')",
        "truncate public.doc",
    ):
        conn.execute(step)
        assert index(conn) == recount(conn), step


@embedded_only
def test_a_virtual_column_that_is_generated_otherwise(conn: psycopg.Connection) -> None:
    conn.execute("set search_path = public")
    conn.execute("create table doc (id int, raw text, body text generated always as (lower(raw)) virtual)")
    WORDS.create(conn)
    WORDS.attach(conn, "doc", MAPPING)
    conn.execute("insert into doc values (1, 'A')")
    conn.execute("alter table doc alter body set expression as (upper(raw))")
    with pytest.raises(psycopg.Error, match=r'column "body" of table (public\.)?doc is generated by another') as caught:
        conn.execute("insert into doc values (1, 'B')")
    assert caught.value.sqlstate == "PC003"
    assert index(conn) == {"a": 1}
    columns = "(id int, raw text, body text generated always as (lower(raw)) virtual)"
    conn.execute(f"create table parent {columns} partition by list (id)")
    conn.execute("create table part (id int, raw text, body text generated always as (upper(raw)) virtual)")
    conn.execute("alter table parent attach partition part for values in (1)")
    with pytest.raises(
        InvalidDefinitionError,
        match=r"virtual column part\.body is generated by another expression than that of parent",
    ):
        WORDS.attach(conn, "parent", MAPPING)


@contextmanager
def role(conn: psycopg.Connection, grants: str = "") -> Iterator[str]:
    """A role that may use the schema public; ``grants`` says what else."""
    name = f"pgcombine_role_{conn.info.backend_pid}"
    conn.execute(f"create role {name}; grant usage on schema public to {name}")
    if grants:
        conn.execute(grants.format(name))
    try:
        yield name
    finally:
        conn.execute("reset role")
        conn.execute(f"drop owned by {name}; drop role {name}")


def test_a_role_that_row_security_binds(docs: psycopg.Connection) -> None:
    docs.execute("set search_path = public")
    WORDS.attach(docs, "doc", MAPPING)
    docs.execute("insert into doc values (1, 'a'), (2, 'b')")
    docs.execute("alter table doc enable row level security")
    docs.execute("create policy odd on doc using (id % 2 = 1) with check (true)")
    with role(docs, "grant all on doc to {0}; grant insert on pgcombine.words_updates to {0}") as name:
        docs.execute(f"set role {name}")
        with pytest.raises(psycopg.Error, match="row security hides rows of doc from role") as caught:
            docs.execute("truncate doc")
        assert caught.value.sqlstate == "PC003"
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            WORDS.verify(docs, recount=True)
        docs.execute("insert into doc values (3, 'c'), (4, 'd')")
        docs.execute("delete from doc where id < 3")
        docs.execute("reset role")
        assert index(docs) == recount(docs) == {"b": 1, "c": 1, "d": 1}
        WORDS.detach(docs, "doc")
        docs.execute(f"set role {name}")
        with pytest.raises(InvalidDefinitionError, match="row security hides rows of doc"):
            WORDS.attach(docs, "doc", MAPPING)
    docs.execute("truncate doc")


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_a_truncate_with_an_old_snapshot(docs: psycopg.Connection, dsn: str, level: str) -> None:
    """It removes rows that its transaction doesn't see."""
    docs.execute("set search_path = public")
    WORDS.attach(docs, "doc", MAPPING)
    with psycopg.connect(dsn) as other:
        other.execute(f"set transaction isolation level {level}")
        other.execute("select count(*) from public.doc")
        docs.execute("insert into doc values (1, 'a')")
        with pytest.raises(psycopg.Error, match="needs isolation level read committed") as caught:
            other.execute("truncate public.doc")
        assert caught.value.sqlstate == "PC003"
    assert index(docs) == {"a": 1}


def keep(
    conn: psycopg.Connection,
    source: str,
    queue: str = "words",
    mapping: str = "select 1",
    path: Sequence[str] = ("public",),
) -> None:
    """Do what attach does in the end."""
    call = (
        "insert into pgcombine.attachment (queue, source, alias, mapping, columns, reads, path) "
        "values (%s, %s, 'doc', %s, '{word}', '{}', %s)"
    )
    conn.execute(call, (queue, source, mapping, list(path)))


def test_who_may_attach(docs: psycopg.Connection) -> None:
    """Not the schema's owner: whoever owns the table, and may enqueue. The right to make triggers isn't enough."""
    docs.execute("set search_path = public")
    with role(docs) as name:
        docs.execute(f"alter table doc owner to {name}; set role {name}")
        with pytest.raises(NotGrantedError, match='may not enqueue to queue "words"'):
            WORDS.attach(docs, "doc", MAPPING)
        docs.execute("reset role; select pgcombine.create_queue('most', '{word text}', '{n bigint max}')")
        docs.execute(
            f"select pgcombine.grant_right('enqueue', '{name}', 'words', 'most'); set role {name};"
            " set search_path = public"
        )
        WORDS.attach(docs, "doc", MAPPING)
        docs.execute("insert into doc values (1, 'a')")
        docs.execute(
            f"reset role; create table other (body text); grant select, trigger on other to {name}; set role {name}"
        )
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match=r"doesn't own (public\.)?other"):
            WORDS.attach(docs, "other", MAPPING)
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
            keep(docs, "other")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
            keep(docs, "0")
        with pytest.raises(psycopg.errors.UniqueViolation):
            keep(docs, "doc")
        with pytest.raises(psycopg.Error, match="can't be attached: what an old row added can't be taken back"):
            keep(docs, "doc", "most")
        WORDS.detach(docs, "doc")
        docs.execute("set check_function_bodies = off")
        with pytest.raises(psycopg.errors.SyntaxError):
            keep(docs, "doc", mapping="rubbish (")
        with docs.transaction(force_rollback=True):  # the function is the owner's, but has its caller's rights
            keep(docs, "doc", path=["public security definer", 'public" security definer --'])
            made = docs.execute("select prosecdef from pg_proc where proname like 'words_attached_%'").fetchall()
            assert made == [(False,)]
        WORDS.attach(docs, "doc", MAPPING, existing=False)
        docs.execute("reset role; alter table doc owner to current_user")
    assert index(docs) == {"a": 1}


@pytest.mark.parametrize("parts", ["", "partition by list (found)"])
def test_names_that_a_trigger_has_as_well(conn: psycopg.Connection, parts: str) -> None:
    conn.execute("set search_path = public")
    conn.execute(f"create table new (found int, old text, tg_op int, pgcombine_mapped int) {parts}")
    if parts:
        conn.execute("create table new_part partition of new default")
    CombineQueue("odd", key=["tg_op text", "found int"], value=["new bigint sum"]).create(conn)
    CombineQueue("odd").attach(
        conn, "new", "select new.old as tg_op, found, tg_op as new where old <> 'no' -- to the end\n  -- of the text"
    )
    conn.execute("insert into new values (1, 'a', 5), (2, 'no', 5)")
    assert conn.execute("select * from pgcombine.odd_current").fetchall() == [("a", 1, 5)]
    conn.execute("update new set old = 'b', found = 2")
    assert CombineQueue("odd").verify(conn, recount=True) == []
    assert conn.execute("select * from pgcombine.odd_current where new <> 0").fetchall() == [("b", 2, 10)]


def test_triggers_that_are_not_there(docs: psycopg.Connection) -> None:
    docs.execute("set search_path = public")
    WORDS.attach(docs, "doc", MAPPING)
    docs.execute("drop trigger pgcombine_words_update on doc")
    docs.execute("alter table doc disable trigger pgcombine_words_delete")
    assert WORDS.verify(docs) == [
        "trigger pgcombine_words_delete of the attached table doc is disabled: alter table … enable trigger",
        "trigger pgcombine_words_update of the attached table doc is missing: run pgcombine db upgrade",
    ]
    docs.execute("alter table doc enable trigger pgcombine_words_delete")
    docs.execute("select pgcombine_internal.regenerate('words')")
    assert WORDS.verify(docs) == []


def test_a_table_that_is_dropped(docs: psycopg.Connection, dsn: str) -> None:
    WORDS.attach(docs, "public.doc", MAPPING)
    docs.execute("drop table public.doc")
    assert WORDS.verify(docs) == []
    docs.execute("select pgcombine_internal.regenerate('words')")
    assert docs.execute("select from pgcombine.attachment").rowcount == 0
    docs.execute("create table public.doc (body text)")
    WORDS.attach(docs, "public.doc", MAPPING)
    docs.execute("drop table public.doc")
    WORDS.drop(docs)
    assert docs.execute("select from pg_proc where proname like 'words%%'").rowcount == 0


def test_a_recount_names_the_keys_that_differ(docs: psycopg.Connection, dsn: str) -> None:
    """Pending updates, and those of a quarantined key, count as well."""
    docs.execute("set search_path = public")
    docs.execute("update pgcombine.queue set quarantine_after = 1")
    with pytest.raises(InvalidDefinitionError, match='no table is attached to queue "words"'):
        WORDS.verify(docs, recount=True)
    docs.execute("create table other_doc (body text)")
    WORDS.attach(docs, "doc", MAPPING)
    WORDS.attach(docs, "other_doc", MAPPING)
    docs.execute("insert into doc select i, 'w' || to_char(i, 'FM00') from generate_series(1, 20) i")
    drain(dsn, "words", timeout=30)
    docs.execute("insert into other_doc values ('w01')")
    docs.execute("select pgcombine.add_observer('words', 'poison', $$select 1 / (word <> 'w01')::int from changes$$)")
    drain(dsn, "words", timeout=30)
    assert docs.execute("select updates from pgcombine.quarantine").fetchall() == [(1,)]
    docs.execute("insert into other_doc values ('w01 w02')")
    assert WORDS.verify(docs, recount=True) == []
    docs.execute("set session_replication_role = replica")
    docs.execute("update doc set body = 'v' where id > 12")
    docs.execute("reset session_replication_role")
    WORDS.enqueue(docs, [("more", 5)])
    assert WORDS.verify(docs) == []
    said = WORDS.verify(docs, recount=True)
    assert said[0].startswith("10 keys differ from a recount of doc, other_doc: ")
    assert said[1:4] == [
        "key (more): n is 5, recounted 0",
        "key (v): n is 0, recounted 8",
        "key (w13): n is 1, recounted 0",
    ]
    assert len(said) == 11
    docs.execute("insert into pgcombine.words_updates values ('a', 1), ('w20', 1)")
    said = WORDS.verify(docs, recount=True)
    assert (len(said), said[0].split(" ")[0], said[1]) == (11, "11", "key (a): n is 1, recounted 0")
    bad = run_cli("verify", "words", "--recount", "--json", "--dsn", dsn)
    assert (bad.returncode, json.loads(bad.stdout)["problems"]) == (
        1,
        [p.replace("of doc, other_doc", "of doc, other_doc") for p in said],
    )
    assert run_cli("verify", "words", "--dsn", dsn).returncode == 0


def test_a_recount_of_several_keys_and_types(docs: psycopg.Connection) -> None:
    docs.execute("set search_path = public")
    docs.execute("create domain share as double precision")
    odd = CombineQueue(
        "odd",
        key=['"The word" text', "day date"],
        value=["docs int count", "share share sum", "took interval sum", '"am""ount" numeric(9,1) sum'],
    )
    odd.create(docs)
    odd.attach(
        docs,
        "doc",
        """select lower(body) collate "C" as "The word", date '2024-02-29' as day, id / 10.0 as share,
        id * interval '1 s' as took, id as "am""ount" """,
    )
    docs.execute("insert into doc select i, 'W' || i % 3 from generate_series(1, 100) i")
    docs.execute("delete from doc where id % 7 = 0")
    docs.execute("update doc set id = id + 1000 where id % 5 = 0")
    assert odd.verify(docs, recount=True) == []
    docs.execute("insert into pgcombine.odd_updates values ('w1', '2024-02-29', 1, 0, '1 s', null)")
    said = odd.verify(docs, recount=True)
    assert len(said) == 2
    assert said[1].startswith("key (w1,2024-02-29): docs is 30, recounted 29, took is ")
    assert "share" not in said[1]


def test_several_queues_and_columns_by_the_tables_name(docs: psycopg.Connection) -> None:
    CombineQueue("Per".lower(), key=["other int"], value=["docs int count", "size numeric sum"]).create(docs)
    WORDS.attach(docs, "public.doc", MAPPING)
    CombineQueue("per").attach(
        docs, "public.doc", "select doc.other, length(doc.body) as size where doc.other % 2 is not null;"
    )
    docs.execute("insert into public.doc values (1, 'a b', 1), (2, 'c', 1), (3, 'd', null)")
    assert docs.execute("select * from pgcombine.per_current").fetchall() == [(1, 2, 4)]
    docs.execute("update public.doc set other = 2 where id = 1")
    assert sorted(docs.execute("select * from pgcombine.per_current").fetchall()) == [(1, 1, 1), (2, 1, 3)]
    assert index(docs) == recount(docs)


def test_a_renamed_column_is_a_clear_error(docs: psycopg.Connection) -> None:
    WORDS.attach(docs, "public.doc", MAPPING)
    docs.execute("alter table public.doc rename other to another")  # not read by the mapping
    docs.execute("insert into public.doc values (1, 'a')")
    docs.execute("alter table public.doc rename body to content")
    with pytest.raises(psycopg.Error, match='no column "body" any more') as caught:
        docs.execute("insert into public.doc values (2, 'b')")
    assert caught.value.sqlstate == "PC003"
    WORDS.detach(docs, "public.doc")
    docs.execute("insert into public.doc values (2, 'b')")
    with pytest.raises(InvalidDefinitionError, match="isn't attached"):
        WORDS.detach(docs, "public.doc")


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ("select 1 as n", 'lacks the key column "word"'),
        ("select", 'lacks the key column "word"'),
        ("select body as word, 1 as m from doc", 'column "m"'),
        ("select nope as word", 'column "nope" does not exist'),
        ("select body as word; drop table doc", "doesn't work"),
        ("select body as word) x; drop table doc; --", "doesn't work"),
        ("", "doesn't work"),
    ],
)
def test_mappings_that_do_not_work(docs: psycopg.Connection, mapping: str, message: str) -> None:
    with pytest.raises(InvalidDefinitionError, match=message):
        WORDS.attach(docs, "public.doc", mapping)
    assert docs.execute("select from pg_trigger where tgrelid = 'public.doc'::regclass").fetchall() == []


def test_refused(docs: psycopg.Connection) -> None:
    CombineQueue("top", key=["word text"], value=["n bigint max"]).create(docs)
    with pytest.raises(InvalidDefinitionError, match=r'"n" \(max\)'):
        CombineQueue("top").attach(docs, "public.doc", MAPPING)
    docs.execute("create view public.docview as select * from public.doc")
    with pytest.raises(psycopg.Error, match="view"):
        WORDS.attach(docs, "public.docview", MAPPING)
    docs.execute("insert into public.doc values (1, 'a', null)")
    with pytest.raises(InvalidDefinitionError, match="null"):
        WORDS.attach(docs, "public.doc", "select null as word, 1 as n")
    WORDS.attach(docs, "public.doc", MAPPING)
    with pytest.raises(QueueExistsError, match="attached"):
        WORDS.attach(docs, "public.doc", MAPPING)


def test_a_queue_that_is_attached_is_not_dropped(docs: psycopg.Connection) -> None:
    WORDS.attach(docs, "public.doc", MAPPING)
    with pytest.raises(QueueNotEmptyError, match="attached to"):
        WORDS.drop(docs)
    WORDS.drop(docs, force=True)
    docs.execute("insert into public.doc values (1, 'a')")
