"""Packed updates: with one bucket those of a call are few rows, and everything else is as with plain ones."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import psycopg
import pytest
from support.audit import audit, audited, check
from support.lanes import each_nth
from support.queues import (
    add,
    combine_all,
    current,
    enqueue,
    enqueue_arrays,
    hold,
    make_queue,
    one,
    rows,
    values,
)

# a type, and the expression over i that makes keys of it
KEYS = {
    "text": "'w' || i",
    "varchar(30)": "'w' || i",
    "char(5)": "'w' || i",
    'text collate "C"': "'w' || i",
    "name": "'w' || i",
    "int": "i * 7919",
    "bigint": "i * -7919::bigint << 20",
    "smallint": "i::smallint",
    "uuid": "md5(i::text)::uuid",
    "date": "date '2000-01-01' + i",
    "timestamptz": "timestamptz '2000-01-01' + i * interval '1 hour'",
    "interval": "i * interval '1 minute'",
    "bytea": "decode(md5(i::text), 'hex')",
    "numeric": "i * 1.10",
    "numeric(10,2)": "i * 1.10",
    "float8": "i * 1.5",
    "boolean": "i % 2 = 0",
    "inet": "inet '10.0.0.1' + i",
    "int4range": "int4range(i, i + 3)",
    "jsonb": "to_jsonb(i)",
}
COMPOUND = ["int text", "text date uuid", "numeric boolean bytea bigint"]


WORDS = [(f"w{i % 70}", i) for i in range(300)]
TOTALS = dict(sum((Counter({word: n}) for word, n in WORDS), Counter()))
NONZERO = {word: n for word, n in TOTALS.items() if n}


def counts(conn: psycopg.Connection) -> tuple[int, int]:
    """How many updates are pending, and how many rows the log has."""
    return one(conn, "select pgcombine.backlog('wc')"), one(conn, "select count(*) from pgcombine.wc_updates")


def packed(conn: psycopg.Connection, **options: Any) -> None:
    """A queue whose updates are packed."""
    make_queue(conn, **{"buckets": 1, **options})


@pytest.mark.parametrize("key", each_nth(2, [*KEYS, *COMPOUND]))
def test_each_kind_of_key(tx: psycopg.Connection, key: str) -> None:
    types = key.split() if key in COMPOUND else [key]
    packed(tx, key=[f"k{i} {name}" for i, name in enumerate(types)], delete_when=None)
    arrays = ", ".join(f"array_agg(({KEYS[name]})::{name.partition(' ')[0]})" for name in types)
    enqueued = one(tx, f"select pgcombine.wc_enqueue({arrays}) from generate_series(1, 400) i")  # noqa: S608
    assert enqueued == 400
    assert counts(tx) == (400, 7)
    combine_all(tx)
    assert one(tx, "select count(*) from pgcombine.wc_values") == (2 if key == "boolean" else 400)


@pytest.mark.parametrize(
    ("key", "finer"),
    [
        ("numeric(10,1)", "i * 0.1 + 0.04"),
        ("timestamptz(0)", "timestamptz '2000-01-01' + i * interval '1.01 s'"),
        ("varchar(4)", "i || '     '"),
    ],
)
def test_keys_that_the_table_rounds(tx: psycopg.Connection, key: str, finer: str) -> None:
    packed(tx, key=[f"k {key}"], delete_when=None)
    assert one(tx, f"select pgcombine.wc_enqueue(array_agg({finer})) from generate_series(1, 400) i") == 400  # noqa: S608
    combine_all(tx)
    assert one(tx, "select count(*) from pgcombine.wc_values") == 400


def test_enums_are_not_packed(tx: psycopg.Connection) -> None:
    """They are hashed by oids, and a dump that is restored has others: passes delete such updates."""
    tx.execute("create type mood as enum ('sad', 'ok', 'happy')")
    packed(tx, key=["mood mood", "i int"], delete_when=None)
    moods = "select (enum_range(null::mood))[1 + i % 3] as mood, i from generate_series(1, 400) i"
    tx.execute(f"select pgcombine.wc_enqueue(array_agg(mood), array_agg(i)) from ({moods}) as m")  # noqa: S608
    assert counts(tx) == (400, 400)
    combine_all(tx)
    assert one(tx, "select count(*) from pgcombine.wc_values") == 400


def test_packed_and_plain_updates_are_the_same(tx: psycopg.Connection) -> None:
    packed(tx)
    assert enqueue_arrays(tx, WORDS) == 300
    add(tx, {"w1": 5, "other": 1})
    assert counts(tx) == (302, 5 + 2)
    expected = {word: n for word, n in (Counter(TOTALS) + Counter({"w1": 5, "other": 1})).items() if n}
    assert current(tx) == expected
    pending = dict(tx.execute("select word, sum(n) from pgcombine.wc_pending group by word").fetchall())
    assert pending["w1"] == TOTALS["w1"] + 5
    assert one(tx, "select n from pgcombine.wc_current where word = 'w1'") == expected["w1"]
    assert one(tx, "select backlog from pgcombine_internal.bucket_status('wc', 0)") == 302
    assert sum(taken for _, taken, _, _, _ in combine_all(tx)) == 302
    assert (one(tx, "select pgcombine.backlog('wc')"), values(tx), current(tx)) == (0, expected, expected)


def test_two_and_more_are_packed(tx: psycopg.Connection) -> None:
    """A row holds 64 at most, so that it stays on its page."""
    packed(tx)
    assert enqueue_arrays(tx, []) == 0
    assert one(tx, "select pgcombine.wc_enqueue(null::text[])") == 0
    for count, stored in ((1, 1), (2, 2), (129, 5)):
        enqueue_arrays(tx, WORDS[:count])
        assert counts(tx)[1] == stored
    assert one(tx, "select count(*) from pgcombine.wc_updates where cardinality(pgcombine_0) = 63") == 2
    combine_all(tx)
    expected = sum((Counter({w: n}) for w, n in [WORDS[0], *WORDS[:2], *WORDS[:129]]), Counter())
    assert values(tx) == {w: n for w, n in expected.items() if n}


@pytest.mark.parametrize("words", ["'[0:1]={a,b}'::text[]", "array[array['a'], array['b']]"])
def test_arrays_of_other_shapes(tx: psycopg.Connection, words: str) -> None:
    packed(tx)
    assert one(tx, f"select pgcombine.wc_enqueue({words}, array[1, 2])") == 2
    combine_all(tx)
    assert values(tx) == {"a": 1, "b": 2}


def test_values_that_are_not_given_take_their_default(tx: psycopg.Connection) -> None:
    packed(tx, value=["n bigint count", "top int max"])
    assert one(tx, "select pgcombine.wc_enqueue(array_agg('w' || i % 2)) from generate_series(1, 100) i") == 100
    assert one(tx, "select pgcombine.wc_enqueue(word => array['w0'], top => array[7])") == 1
    combine_all(tx)
    assert rows(tx, "wc_values") == [("w0", 51, 7), ("w1", 50, None)]


def test_nulls_among_values(tx: psycopg.Connection) -> None:
    packed(tx, value=["n bigint max"], delete_when=None)
    words, numbers = [f"w{i % 3}" for i in range(99)], [i if i % 3 == 1 else None for i in range(99)]
    tx.execute("select pgcombine.wc_enqueue(%s, %s)", (words, numbers))
    assert counts(tx) == (99, 2)
    combine_all(tx)
    assert values(tx) == {"w0": None, "w1": 97, "w2": None}


@pytest.mark.parametrize(
    ("words", "numbers", "sqlstate"),
    [
        (["a", "b"], [1], "PC004"),
        (["a", None] * 50, [1] * 100, "23502"),
        (["a", "x" * 2601] * 50, [1] * 100, "23514"),
    ],
    ids=["lengths", "a null key", "a long key"],
)
def test_what_is_refused(tx: psycopg.Connection, words: list[Any], numbers: list[int], sqlstate: str) -> None:
    packed(tx)
    with pytest.raises(psycopg.Error) as caught, tx.transaction():
        tx.execute("select pgcombine.wc_enqueue(%s, %s::bigint[])", (words, numbers))
    assert caught.value.sqlstate == sqlstate
    assert counts(tx) == (0, 0)


@pytest.mark.parametrize("length", [*(pytest.param(one, marks=pytest.mark.slow) for one in (100, 2000, 2596)), 2600])
@pytest.mark.parametrize("key", [["word text"], ["word text", "other text"], ["word varchar"], ["word bytea"]])
def test_long_keys_that_are_allowed(tx: psycopg.Connection, key: list[str], length: int) -> None:
    """Each of them may be as long as in a plain row."""
    packed(tx, key=key, value=["n bigint count"], delete_when=None)
    size = length // len(key)
    kind = key[0].split()[1]
    words = f"array_agg((repeat('x', {size - 4}) || 1000 + i)::{kind})"
    arrays = ", ".join([words] * len(key))
    for _ in range(2):
        tx.execute(f"select pgcombine.wc_enqueue({arrays}) from generate_series(1, 100) i")  # noqa: S608
        combine_all(tx)
    assert one(tx, "select count(*) from pgcombine.wc_values where n = 2") == 100


def test_enqueue_packs_as_well(tx: psycopg.Connection) -> None:
    packed(tx)
    assert enqueue(tx, [{"word": word, "n": n} for word, n in WORDS]) == 300
    assert counts(tx) == (300, 5)
    combine_all(tx)
    assert values(tx) == NONZERO


def test_who_may_only_insert_packs_as_well(tx: psycopg.Connection, role: str) -> None:
    packed(tx)
    tx.execute(f"grant insert on pgcombine.wc_updates to {role}; set role {role}")
    assert enqueue_arrays(tx, WORDS) == 300
    assert enqueue(tx, [{"word": word, "n": n} for word, n in WORDS]) == 300
    tx.execute("reset role")
    assert counts(tx) == (600, 10)


def test_who_may_insert_the_columns_of_the_queue_alone(tx: psycopg.Connection, role: str) -> None:
    packed(tx)
    tx.execute(f"grant insert (word, n) on pgcombine.wc_updates to {role}; set role {role}")
    assert enqueue_arrays(tx, WORDS) == 300
    tx.execute("reset role")
    assert counts(tx) == (300, 300)


def test_row_security_sees_each_update(tx: psycopg.Connection, role: str) -> None:
    packed(tx)
    tx.execute(f"grant insert on pgcombine.wc_updates to {role}")
    tx.execute("alter table pgcombine.wc_updates enable row level security")
    tx.execute(f"create policy mine on pgcombine.wc_updates for insert to {role} with check (word like 'w%')")
    tx.execute(f"set role {role}")
    assert enqueue_arrays(tx, WORDS) == 300
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
        enqueue_arrays(tx, [*WORDS, ("x", 1)])
    tx.execute("reset role")
    assert one(tx, "select pgcombine.backlog('wc')") == 300


@pytest.mark.parametrize(
    "options",
    [
        {"max_backlog": 1000},
        {"buckets": 2},
        {"buckets": 4, "buckets_per_partition": 4},
        {"value": ["n bigint sum", "tags text[] array_union"]},
    ],
    ids=lambda options: json.dumps(options),
)
def test_where_nothing_is_packed(tx: psycopg.Connection, options: dict[str, Any]) -> None:
    packed(tx, **options)
    assert enqueue(tx, [{"word": word, "n": n} for word, n in WORDS]) == 300
    assert counts(tx) == (300, 300)


@pytest.mark.parametrize("repeated", [True, False], ids=["repeated keys", "unique keys"])
def test_a_packed_backlog_beyond_the_limit(tx: psycopg.Connection, repeated: bool) -> None:
    """Passes take slices of the keys, whichever rows hold them, and a key is reported once all its updates are in."""
    packed(tx, pass_limit=50)
    audit(tx)
    updates = [(f"w{i % 40 if repeated else i}", 1) for i in range(1000)]
    for start in range(0, 1000, 200):
        enqueue_arrays(tx, updates[start : start + 200])
    assert counts(tx)[1] < 30
    done = combine_all(tx)
    assert max(taken for _, taken, _, _, _ in done) <= 200
    check(tx, Counter(word for word, _ in updates))
    assert len(audited(tx)) == len({word for word, _ in updates})


def test_a_backlog_beyond_the_limit_while_packed_updates_come(tx: psycopg.Connection) -> None:
    packed(tx, pass_limit=50)
    add(tx, {f"w{i}": 1 for i in range(500)})
    for step in range(40):
        enqueue_arrays(tx, [(f"new{step}", 1), (f"newer{step}", 1)])
        tx.execute("select pgcombine.combine('wc', 0)")
    assert one(tx, "select pgcombine.backlog('wc')") < 50
    assert one(tx, "select count(*) from pgcombine.wc_values") > 530


def test_a_poison_key_among_packed_ones(tx: psycopg.Connection) -> None:
    packed(tx, value=["n smallint sum"])
    words = [f"w{i}" for i in range(50)] + ["bad"] * 50
    tx.execute("select pgcombine.wc_enqueue(%s, %s::smallint[])", (words, [1] * 50 + [30000] * 50))
    with pytest.raises(psycopg.errors.NumericValueOutOfRange):
        tx.execute("select pgcombine.combine('wc', 0)")
    hold(tx, attempts=5, error="out of range", word="bad")
    tx.execute("select pgcombine.wc_enqueue(%s, %s::smallint[])", (words, [1] * 50 + [30000] * 50))
    combine_all(tx)
    assert values(tx) == {f"w{i}": 2 for i in range(50)}
    assert one(tx, "select updates from pgcombine.quarantined_key") == 100


def test_a_key_is_quarantined_after_others_were_packed_with_it(tx: psycopg.Connection) -> None:
    """Committed before the key was quarantined, seen by a pass only after it."""
    packed(tx)
    enqueue_arrays(tx, [("a", 1), ("b", 1)] * 50)
    tx.execute(
        "with listed as (insert into pgcombine.quarantined_key (queue, key, updates, attempts, sqlstate, error) "
        "values ('wc', '{}', 0, 5, 'XX000', 'a test') returning id) "
        "insert into pgcombine.wc_quarantine_keys select 'b', id from listed"
    )
    assert current(tx) == {"a": 50}
    combine_all(tx)
    assert (values(tx), one(tx, "select pgcombine.backlog('wc')")) == ({"a": 50}, 0)
    assert one(tx, "select updates from pgcombine.quarantined_key") == 50
    assert one(tx, "select pgcombine.quarantine_retry('wc')") == 50
    combine_all(tx)
    assert values(tx) == {"a": 50, "b": 50}


@pytest.mark.parametrize(("before", "after"), [(1, 4), (4, 1), (1, 1)])
def test_rebucket_with_packed_updates_pending(tx: psycopg.Connection, before: int, after: int) -> None:
    make_queue(tx, buckets=before)
    enqueue_arrays(tx, WORDS)
    combine_all(tx)
    enqueue_arrays(tx, WORDS)
    tx.execute("select pgcombine.rebucket('wc', %s)", (after,))
    assert one(tx, "select pgcombine.backlog('wc')") == 300
    enqueue_arrays(tx, WORDS)
    assert one(tx, "select pgcombine.backlog('wc')") == 600
    combine_all(tx)
    assert values(tx) == {word: 3 * n for word, n in NONZERO.items()}
    assert one(tx, "select count(*) from pgcombine.verify('wc')") == 0


LONG = "".join(chr(0x4E00 + i) for i in range(900))  # 2700 bytes that hardly compress
BROKEN: dict[str, tuple[Any, Any]] = {
    "a null key": (["b", None], [1, 1]),
    "a long key": (["b", LONG], [1, 1]),
    "a long key that compresses": (["b", "x" * 100_000], [1, 1]),
    "a long key among equal ones": ([LONG] * 20, [1] * 20),
    "too many values": (["b"], [1, 1]),
    "too many keys": (["b", "c"], [1]),
    "no array of values": (["b"], None),
    "no array of keys": (None, [1]),
    "empty arrays": ([], []),
    "two dimensions": ([["b", "c"]], [[1, 1]]),
}
BROKEN_ROW = (
    "insert into pgcombine.wc_updates (word, n, pgcombine_0, pgcombine_1) values ('a', 7, %s::text[], %s::bigint[])"
)


@pytest.mark.parametrize("arrays", BROKEN.values(), ids=BROKEN)
def test_a_row_that_is_no_set_of_updates_is_refused(tx: psycopg.Connection, role: str, arrays: tuple[Any, Any]) -> None:
    """Whoever writes it, and however it comes."""
    packed(tx)
    tx.execute(f"grant insert on pgcombine.wc_updates to {role}")
    tx.execute("create table public.stored (words text[], numbers bigint[])")  # compressed, or elsewhere
    tx.execute("insert into public.stored values (%s, %s)", arrays)
    for statement, parameters in [
        (BROKEN_ROW, arrays),
        (
            "insert into pgcombine.wc_updates (word, n, pgcombine_0, pgcombine_1) select 'a', 7, * from public.stored",
            (),
        ),
    ]:
        with pytest.raises(psycopg.errors.CheckViolation, match="what_is_in_arrays_must_be_updates"):
            tx.execute(statement, parameters)
    tx.execute(f"set role {role}")
    with pytest.raises(psycopg.errors.CheckViolation):
        tx.execute(BROKEN_ROW, arrays)
    with (
        pytest.raises(psycopg.errors.CheckViolation),
        tx.cursor().copy("copy pgcombine.wc_updates (word, n, pgcombine_0, pgcombine_1) from stdin") as copy,
    ):
        copy.write_row(("a", 7, *arrays))
    tx.execute("reset role")
    assert counts(tx) == (0, 0)


def test_a_row_of_arrays_that_somebody_writes_is_a_set_of_updates(tx: psycopg.Connection) -> None:
    packed(tx)
    tx.execute(BROKEN_ROW, (["b", "a"], [1, None]))
    tx.execute(BROKEN_ROW, (None, None))
    assert current(tx) == {"a": 14, "b": 1}
    combine_all(tx)
    assert values(tx) == {"a": 14, "b": 1}
