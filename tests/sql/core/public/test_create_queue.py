"""pgcombine.create_queue: the objects that it creates, and the definitions that it refuses."""

from __future__ import annotations

import psycopg
import pytest
from support.queues import add, combine_all, enqueue, make_queue, one, rows, values, word_in
from support.servers import names
from support.sessions import in_background
from support.states import raises_state

from pgcombine.queue.dropping import drop
from pgcombine.worker.passes import open_connection

WRONG = {
    "name: null": {"queue": None},
    "name: empty": {"queue": ""},
    "name: upper case": {"queue": "Words"},
    "name: digit first": {"queue": "1wc"},
    "name: quote": {"queue": 'w"c'},
    "name: blank": {"queue": "w c"},
    "name: line end": {"queue": "wc\n"},
    "name: too long": {"queue": "w" * 41},
    "name: reserved": {"queue": "queue"},
    "name: pg_": {"queue": "pg_words"},
    "buckets: none": {"buckets": 0},
    "buckets: negative": {"buckets": -1},
    "buckets: too many": {"buckets": 1025},
    "buckets: null": {"buckets": None},
    "no key": {"key": []},
    "null keys": {"key": None},
    "no value": {"value": []},
    "key: no type": {"key": ["word"]},
    "key: null": {"key": [None]},
    "key: empty": {"key": [""]},
    "key: bad name": {"key": ["1word text"]},
    "key: unknown type": {"key": ["word txet"]},
    "key: unknown schema": {"key": ["word nowhere.text"]},
    "key: bad length": {"key": ["word varchar(0)"]},
    "key: pseudo-type": {"key": ["word anyelement"]},
    "key: default smuggled": {"key": ["word text default 'x'"]},
    "key: second statement": {"key": ["word text); drop table pgcombine.queue; --"]},
    "key: comment": {"key": ["word text --"]},
    "key: comment in the type": {"key": ["word text /* */"]},
    "key: json has no equality": {"key": ["doc json"]},
    "key: money has no hash": {"key": ["price money"]},
    "key: tsvector has no hash": {"key": ["text tsvector"]},
    "key: point has no order": {"key": ["place point"]},
    "key: array without equality": {"key": ["docs json[]"]},
    "column name: too long": {"key": [f"{'k' * 60} text"]},
    "column name: too many bytes": {"key": [f'"{"ä" * 30}" text']},
    "column name: reserved": {"key": ["ctid text"]},
    "column name: ours": {"key": ["pgcombine_row text"]},
    "column twice: keys": {"key": ["word text", "WORD text"]},
    "column twice: key, value": {"key": ["n text"]},
    "column twice: old value": {"key": ["old_n text"]},
    "column twice: new value": {"value": ["n bigint sum", "new_n int sum"]},
    "value: no combiner": {"value": ["n bigint"]},
    "value: only a name": {"value": ["n"]},
    "value: unknown combiner": {"value": ["n bigint nosuch"]},
    "value: two-word type only": {"value": ["n double precision"]},
    "value: unknown type": {"value": ["n bigitn sum"]},
    "value: a precision that is no integer": {"value": ["n numeric(99999999999) sum"]},
    "value: comment": {"value": ["n bigint -- sum"]},
    "combiner: sum of text": {"value": ["n text sum"]},
    "combiner: sum of dates": {"value": ["n date sum"]},
    "combiner: count of float": {"value": ["n real count"]},
    "combiner: min of json": {"value": ["n json min"]},
    "combiner: max of json": {"value": ["n json max"]},
    "delete_when: empty": {"delete_when": ""},
    "delete_when: doesn't parse": {"delete_when": "n ="},
    "delete_when: not boolean": {"delete_when": "n + 1"},
    "delete_when: unknown column": {"delete_when": "m = 0"},
    "delete_when: key column": {"delete_when": "word = ''"},
    "delete_when: old value": {"delete_when": "old_n = 0"},
    "delete_when: system column": {"delete_when": "n = 0 and ctid is null"},
    "delete_when: row": {"delete_when": "new is null"},
    "delete_when: aggregate": {"delete_when": "sum(n) = 0"},
    "delete_when: subquery": {"delete_when": "n = (select 0)"},
    "delete_when: parameter": {"delete_when": "n = $1"},
    "delete_when: second statement": {"delete_when": "n = 0); delete from pgcombine.queue; select (true"},
    "delete_when: second statement, comment": {"delete_when": "n = 0); drop table pgcombine.queue cascade; --"},
    "delete_when: union": {"delete_when": "true) union select (1"},
    "delete_when: column added": {"delete_when": "true), add column x int check (true"},
}


@pytest.mark.parametrize("arguments", WRONG.values(), ids=WRONG)
def test_invalid_definitions_are_refused(auto: psycopg.Connection, arguments: dict[str, object]) -> None:
    with raises_state("PC003") as refused:
        make_queue(auto, **arguments)
    assert refused.value.diag.message_hint
    left = "select count(*) from pg_class where relnamespace = 'pgcombine'::regnamespace and relname like 'wc%'"
    assert (one(auto, left), rows(auto, "queue"), rows(auto, "bucket")) == (0, [], [])


def test_queue_has_two_partitioned_tables_and_two_views(tx: psycopg.Connection) -> None:
    make_queue(tx, buckets=3)
    kinds = tx.execute(
        "select relname, relkind::text from pg_class where relnamespace = 'pgcombine'::regnamespace"
        " and relname in ('wc_updates', 'wc_values', 'wc_pending', 'wc_current') order by 1"
    ).fetchall()
    assert kinds == [("wc_current", "v"), ("wc_pending", "v"), ("wc_updates", "p"), ("wc_values", "p")]
    for table in ("wc_updates_s3", "wc_values"):
        bounds = tx.execute(
            "select pg_get_expr(c.relpartbound, c.oid) from pg_inherits i join pg_class c on c.oid = i.inhrelid"
            " where i.inhparent = %s::regclass order by c.relname",
            (f"pgcombine.{table}",),
        ).fetchall()
        assert bounds == [(f"FOR VALUES WITH (modulus 3, remainder {b})",) for b in range(3)]
    assert [row[:2] for row in rows(tx, "bucket")] == [("wc", 0), ("wc", 1), ("wc", 2)]


@pytest.mark.wc
def test_existing_queue_is_refused(conn: psycopg.Connection) -> None:
    add(conn, {"fluo": 1})
    with raises_state("PC002"), conn.transaction():
        make_queue(conn)
    combine_all(conn)
    assert values(conn) == {"fluo": 1}


@pytest.mark.parametrize("name", ["wc_updates", "wc_values", "wc_pending", "wc_current"])
def test_existing_relation_is_not_replaced(auto: psycopg.Connection, name: str) -> None:
    with auto.transaction(force_rollback=True):
        auto.execute(f"create table pgcombine.{name} ()")
        with raises_state("PC002"):
            make_queue(auto)


def test_existing_function_is_not_overloaded(auto: psycopg.Connection) -> None:
    with auto.transaction(force_rollback=True):
        auto.execute("create function pgcombine.own_enqueue() returns void language sql as 'select'")
        with raises_state("PC002"):
            make_queue(auto, "own")


def test_longest_names_are_accepted(tx: psycopg.Connection) -> None:
    name, key, value = "q" * 40, "k" * 59, "v" * 59
    make_queue(tx, name, key=[f"{key} text"], value=[f"{value} bigint sum"], delete_when=f"{value} = 0")
    enqueue(tx, [{key: "a", value: 2}, {key: "b", value: 0}], name)
    combine_all(tx, name)
    assert values(tx, name) == {"a": 2}


def test_queue_names_may_begin_alike(tx: psycopg.Connection) -> None:
    for name in ("a", "a_updates", "a_updates_updates", "a_b0000", "a_values_b0000"):
        make_queue(tx, name, buckets=1)
    for number, name in enumerate(("a", "a_updates", "a_b0000"), 1):
        add(tx, {"x": number}, name)
        combine_all(tx, name)
    assert [values(tx, name) for name in ("a", "a_updates", "a_b0000", "a_updates_updates")] == [
        {"x": 1},
        {"x": 2},
        {"x": 3},
        {},
    ]


COLUMNS = [
    "order",
    "select",
    "100%",
    "%s",
    "%1$s",
    "%I%L",
    'quo"ted',
    "it's",
    "a b",
    "Größe",
    "$1",
    ":name",
    "u",
    "v",
    "c",
    "new",
    "taken",
    "queue",
    "bucket",
    "a.b",
    "\\",
]


@pytest.mark.parametrize("name", COLUMNS)
def test_column_names_may_need_quotes(tx: psycopg.Connection, name: str) -> None:
    def quoted(name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    key, value = f"{name}#", name
    make_queue(
        tx,
        key=[f"{quoted(key)} text"],
        value=[f"{quoted(value)} bigint sum"],
        delete_when=f"{quoted(value)} % 5 = 0",
        buckets=2,
    )
    enqueue(tx, [{key: "a", value: 1}, {key: "a", value: 2}, {key: "b", value: 5}])
    assert dict(rows(tx, "wc_current")) == {"a": 3}
    assert sum(done[3] for done in combine_all(tx)) == 1
    assert values(tx) == {"a": 3}
    enqueue(tx, {key: "a", value: 7})
    assert combine_all(tx)[0][1:4] == (1, 1, 1)
    assert values(tx) == {}


def test_unquoted_names_fold_to_lower_case(tx: psycopg.Connection) -> None:
    make_queue(
        tx, key=["Word text", '"Word" text'], value=["N\tbigint\tSUM", '"N"\n numeric(10,2)  Max'], delete_when="N = 0"
    )
    names = tx.execute("select name, type, combiner from pgcombine.queue_column order by position").fetchall()
    assert names == [
        ("word", "text", None),
        ("Word", "text", None),
        ("n", "bigint", "sum"),
        ("N", "numeric(10,2)", "max"),
    ]


def test_types_of_other_schemas_work_whatever_the_search_path(tx: psycopg.Connection) -> None:
    tx.execute("create schema app")
    tx.execute("create type app.level as enum ('low', 'mid', 'high')")
    tx.execute("create function app.is_low(app.level) returns boolean language sql immutable as $$select $1 = 'low'$$")
    tx.execute("set search_path = app, public")
    make_queue(tx, key=["word text"], value=["top level max"], delete_when="is_low(top)")
    tx.execute("reset search_path")
    enqueue(tx, [{"word": "a", "top": "mid"}, {"word": "a", "top": "high"}, {"word": "b", "top": "low"}])
    combine_all(tx)
    assert values(tx) == {"a": "high"}


def test_create_queue_warns_of_many_buckets(tx: psycopg.Connection) -> None:
    notices: list[str] = []
    tx.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
    make_queue(tx, buckets=128)
    assert notices == []
    make_queue(tx, "more", buckets=129)
    assert notices == ['queue "more": 129 buckets are 645 tables; statements on all of them take as many locks']


def test_rollback_removes_the_queue(conn: psycopg.Connection) -> None:
    with conn.transaction(force_rollback=True):
        make_queue(conn)
        add(conn, {"a": 1})
    assert rows(conn, "queue") == []
    make_queue(conn)
    assert one(conn, "select pgcombine.backlog('wc')") == 0


def test_enqueue_without_notify_can_be_prepared(conn: psycopg.Connection, dsn: str) -> None:
    """A transaction that has notified a sleeping worker can't be prepared."""

    def prepare(queue: str) -> None:
        conn.execute("begin")
        add(conn, {"a": 1}, queue)
        conn.execute("prepare transaction 'kept'")

    with psycopg.connect(dsn, autocommit=True) as sleeper:
        for queue, notify in (("wc", True), ("silent", False)):
            make_queue(conn, queue, notify=notify, max_backlog=10)
            taken = "select pgcombine_internal.take_idle_lock(%s::regclass)"
            assert one(sleeper, taken, f"pgcombine.{queue}_updates") == "taken"
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            prepare("wc")
        prepare("silent")
    assert combine_all(conn, "silent") == []
    conn.execute("commit prepared 'kept'")
    combine_all(conn, "silent")
    assert values(conn, "silent") == {"a": 1}


@pytest.mark.parametrize("name", ["$function$", "$$", "$body$", "it's \\", '%1$s "x" %I', "-- */", "select\n;"])
def test_a_column_may_have_any_name(conn: psycopg.Connection, name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    for buckets in (1, 2):
        queue = f"q{buckets}"
        make_queue(
            conn,
            queue,
            key=[f"{quoted} text", '"word $function$" text'],
            value=['"n $function$" bigint sum'],
            delete_when='"n $function$" = 0',
            buckets=buckets,
        )
        arrays = ("array_agg('a' || i % 2)", "array_agg('b'::text)", "array_agg(1::bigint)")
        conn.execute(
            f"select pgcombine.{queue}_enqueue({', '.join(arrays)}) from generate_series(1, 100) i"  # noqa: S608
        )
        enqueue(conn, [{name: "a0", "word $function$": "b", "n $function$": 2}], queue)
        combine_all(conn, queue)
        assert rows(conn, f"{queue}_values") == [("a0", "b", 52), ("a1", "b", 50)]
        conn.execute("select pgcombine.drop_queue(%s)", (queue,))


@pytest.mark.parametrize("kind", ["real", "double precision", "numeric"])
def test_domain_keeps_nan_and_infinity_out_of_a_sum(conn: psycopg.Connection, kind: str) -> None:
    conn.execute(f"create domain public.finite as {kind} check (value not in ('NaN', 'Infinity', '-Infinity'))")
    make_queue(conn, value=["n public.finite sum"], delete_when=None, buckets=1)
    for number in ("NaN", "Infinity", "-Infinity"):
        for enqueue_it in (
            f"insert into pgcombine.wc_updates values ('a', '{number}')",  # noqa: S608
            f"select pgcombine.wc_enqueue(array['a', 'b'], array['1', '{number}']::public.finite[])",
            f"""select pgcombine.enqueue('wc', '[{{"word": "a", "n": "{number}"}}]')""",
        ):
            with pytest.raises(psycopg.errors.CheckViolation):
                conn.execute(enqueue_it)
        copying = conn.cursor().copy("copy pgcombine.wc_updates (word, n) from stdin")
        with pytest.raises(psycopg.errors.CheckViolation), copying as copy:
            copy.write_row(("a", number))
    conn.execute("select pgcombine.wc_enqueue(array['a', 'b', 'a'], array[1, 2, 0.5]::public.finite[])")
    conn.execute("insert into pgcombine.wc_updates values ('a', null)")
    combine_all(conn)
    assert {word: float(n) for word, n in values(conn).items()} == {"a": 1.5, "b": 2}


def test_a_sum_keeps_nan(tx: psycopg.Connection) -> None:
    """Infinity plus -Infinity is NaN, and later updates don't change it."""
    make_queue(tx, value=["n numeric sum"], delete_when="n = 0", buckets=1)
    for number in ("1", "Infinity", None, "-Infinity", "-1"):
        tx.execute("insert into pgcombine.wc_updates values ('a', %s::numeric)", (number,))
        combine_all(tx)
    assert one(tx, "select n::text from pgcombine.wc_values") == "NaN"


def test_sum_accepts_a_domain(tx: psycopg.Connection) -> None:
    tx.execute("create domain amount as numeric(10, 2)")
    make_queue(tx, value=["n amount sum"])
    enqueue(tx, [{"word": "a", "n": 1.25}, {"word": "a", "n": 2}])
    combine_all(tx)
    assert one(tx, "select n::text from pgcombine.wc_values") == "3.25"


@pytest.mark.parametrize("server", names()[-1:], indirect=True)
def test_queue_may_have_1024_buckets(auto: psycopg.Connection, module_dsn: str) -> None:
    make_queue(auto, buckets=1024)
    try:
        word = word_in(auto, 1023)
        add(auto, {word: 1})
        assert one(auto, "select updates from pgcombine.combine('wc', 1023)") == 1
        assert values(auto) == {word: 1}
    finally:
        with open_connection(module_dsn) as session:
            drop(session, "wc", force=True)


SAME = "key => '{word text,day date}', value => '{n bigint sum,m int max}', delete_when => 'n = 0', "


def test_if_not_exists_accepts_the_same_definition(conn: psycopg.Connection) -> None:
    create = f"select pgcombine.create_queue('wc', {SAME} if_not_exists => true"
    for options in (")", ")", ", buckets => 8)", ", pass_limit => 9)"):
        conn.execute(create.encode() + options.encode())
    conn.execute("select pgcombine.rebucket('wc', 2)")
    conn.execute(
        "select pgcombine.create_queue('wc', '{word text,day date}', '{n int8 sum,m int4 max}',"
        " delete_when => '( n=0 )', if_not_exists => true)"
    )
    assert one(conn, "select count(*) from pgcombine.queue") == 1
    with raises_state("PC002"):
        conn.execute(f"select pgcombine.create_queue('wc', {SAME} buckets => 4)".encode())


@pytest.mark.parametrize(
    "change",
    [
        "value => '{n bigint sum,m int min}'",
        "value => '{n bigint sum}'",
        "key => '{word text}'",
        "key => '{word text,day timestamp}'",
        "delete_when => null",
        "expire_when => 'm > 3'",
        "expire_every => '1 h'",
        "notify => false",
        "max_backlog => 10",
        "quarantine_after => 7",
        "token_retention => '3 days'",
    ],
)
def test_if_not_exists_names_the_difference(conn: psycopg.Connection, change: str) -> None:
    conn.execute(f"select pgcombine.create_queue('wc', {SAME} buckets => 2)".encode())
    name = change.split(" ")[0]
    other = ", ".join(
        [
            change,
            *(part for part in SAME.rstrip(", ").split(", ") if not part.startswith(name)),
            "if_not_exists => true",
        ]
    )
    with raises_state("PC002"):
        conn.execute(f"select pgcombine.create_queue('wc', {other})".encode())
    assert conn.execute("select queue from pgcombine.queue").fetchall() == [("wc",)]


def test_concurrent_calls_with_if_not_exists_create_one_queue(conn: psycopg.Connection, dsn: str) -> None:
    def create() -> None:
        with psycopg.connect(dsn, autocommit=True) as mine:
            mine.execute(f"select pgcombine.create_queue('wc', {SAME} if_not_exists => true)".encode())

    with in_background(*[create] * 4) as done:
        for one_of_them in done:
            one_of_them.result()
    assert conn.execute("select queue from pgcombine.queue").fetchall() == [("wc",)]


def test_delete_when_of_many_columns_is_tried_on_few_samples(conn: psycopg.Connection) -> None:
    """Two samples of each of 40 columns would be 2^40 rows."""
    make_queue(conn, value=[f"n{number} bigint sum" for number in range(40)], delete_when="n0 = 0 and n39 = 0")
