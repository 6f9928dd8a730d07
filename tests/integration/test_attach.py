"""``attach``: a user's table feeds a queue; the reference's word index, and what may happen to a table."""

from __future__ import annotations

import random
from collections import Counter

import psycopg
import pytest

from pgcombine.errors import InvalidDefinition, QueueExists, QueueNotEmpty
from pgcombine.queue import CombineQueue
from pgcombine.worker import drain

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


def test_partitioned_table(conn: psycopg.Connection) -> None:
    conn.execute("create table public.doc (id int, body text) partition by list (id)")
    conn.execute("create table public.doc_1 partition of public.doc for values in (1)")
    conn.execute("create table public.doc_2 partition of public.doc for values in (2)")
    WORDS.create(conn)
    WORDS.attach(conn, "public.doc", MAPPING)
    conn.execute("insert into public.doc values (1, 'a b'), (2, 'b c')")
    assert index(conn) == recount(conn)
    conn.execute("update public.doc set id = 2, body = 'moved' where id = 1")
    assert index(conn) == recount(conn)
    conn.execute("truncate public.doc")
    assert index(conn) == {}


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
    with pytest.raises(InvalidDefinition, match="isn't attached"):
        WORDS.detach(docs, "public.doc")


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ("select 1 as n", 'lacks the key column "word"'),
        ("select body as word, 1 as m from doc", 'column "m"'),
        ("select nope as word", 'column "nope" does not exist'),
        ("select body as word; drop table doc", "doesn't work"),
        ("select body as word) x; drop table doc; --", "doesn't work"),
        ("", "doesn't work"),
    ],
)
def test_mappings_that_do_not_work(docs: psycopg.Connection, mapping: str, message: str) -> None:
    with pytest.raises(InvalidDefinition, match=message):
        WORDS.attach(docs, "public.doc", mapping)
    assert docs.execute("select from pg_trigger where tgrelid = 'public.doc'::regclass").fetchall() == []


def test_refused(docs: psycopg.Connection) -> None:
    CombineQueue("top", key=["word text"], value=["n bigint max"]).create(docs)
    with pytest.raises(InvalidDefinition, match=r'"n" \(max\)'):
        CombineQueue("top").attach(docs, "public.doc", MAPPING)
    docs.execute("create view public.docview as select * from public.doc")
    with pytest.raises(psycopg.Error, match="view"):
        WORDS.attach(docs, "public.docview", MAPPING)
    docs.execute("insert into public.doc values (1, 'a', null)")
    with pytest.raises(InvalidDefinition, match="null"):
        WORDS.attach(docs, "public.doc", "select null as word, 1 as n")
    WORDS.attach(docs, "public.doc", MAPPING)
    with pytest.raises(QueueExists, match="attached"):
        WORDS.attach(docs, "public.doc", MAPPING)


def test_a_queue_that_is_attached_is_not_dropped(docs: psycopg.Connection) -> None:
    WORDS.attach(docs, "public.doc", MAPPING)
    with pytest.raises(QueueNotEmpty, match="attached to"):
        WORDS.drop(docs)
    WORDS.drop(docs, force=True)
    docs.execute("insert into public.doc values (1, 'a')")
