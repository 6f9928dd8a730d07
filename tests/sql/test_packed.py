"""Packed updates: many that are enqueued at once are few rows, and everything else is as with plain ones."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb
from support.audit import audit, audited, check
from support.queues import (
    add,
    combine_all,
    current,
    enqueue,
    enqueue_arrays,
    make_queue,
    one,
    rows,
    values,
    word_in,
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


def counts(conn: psycopg.Connection) -> tuple[int, int]:
    """How many updates are pending, and in how many rows."""
    return one(conn, "select pgcombine.backlog('wc')"), one(conn, "select count(*) from pgcombine.wc_updates")


WORDS = [(f"w{i % 70}", i) for i in range(300)]
TOTALS = dict(sum((Counter({word: n}) for word, n in WORDS), Counter()))


@pytest.mark.parametrize("buckets", [1, 3, 4, 7, 16])
@pytest.mark.parametrize("key", [*KEYS, *COMPOUND])
def test_what_is_packed_into_a_row_belongs_to_its_bucket(tx: psycopg.Connection, key: str, buckets: int) -> None:
    """PostgreSQL checks it: a pass inserts each key into its bucket's own partition of the values."""
    types = key.split() if key in COMPOUND else [key]
    make_queue(tx, key=[f"k{i} {name}" for i, name in enumerate(types)], delete_when=None, buckets=buckets)
    arrays = ", ".join(f"array_agg(({KEYS[name]})::{name.partition(' ')[0]})" for name in types)
    enqueued = one(tx, f"select pgcombine.wc_enqueue({arrays}) from generate_series(1, 400) i")  # noqa: S608
    assert enqueued == 400
    backlog, stored = counts(tx)
    assert backlog == 400
    assert stored < 100
    combine_all(tx)
    assert [problem for (problem,) in tx.execute("select problem from pgcombine.verify('wc')")] == []
    assert one(tx, "select count(*) from pgcombine.wc_values") == (2 if key == "boolean" else 400)


@pytest.mark.parametrize("buckets", [1, 4])
@pytest.mark.parametrize(
    ("key", "finer"),
    [
        ("numeric(10,1)", "i * 0.1 + 0.04"),
        ("timestamptz(0)", "timestamptz '2000-01-01' + i * interval '1.01 s'"),
        ("varchar(4)", "i || '     '"),
    ],
)
def test_keys_that_the_table_rounds(tx: psycopg.Connection, key: str, finer: str, buckets: int) -> None:
    make_queue(tx, key=[f"k {key}"], delete_when=None, buckets=buckets)
    assert one(tx, f"select pgcombine.wc_enqueue(array_agg({finer})) from generate_series(1, 400) i") == 400  # noqa: S608
    assert [problem for (problem,) in tx.execute("select problem from pgcombine.verify('wc')")] == []
    combine_all(tx)
    assert one(tx, "select count(*) from pgcombine.wc_values") == 400


def test_enums_are_not_packed(tx: psycopg.Connection) -> None:
    """They are hashed by oids, and a dump that is restored has others."""
    tx.execute("create type mood as enum ('sad', 'ok', 'happy')")
    make_queue(tx, key=["mood mood", "i int"], delete_when=None)
    moods = "select (enum_range(null::mood))[1 + i % 3] as mood, i from generate_series(1, 400) i"
    tx.execute(f"select pgcombine.wc_enqueue(array_agg(mood), array_agg(i)) from ({moods}) as m")  # noqa: S608
    assert counts(tx) == (400, 400)
    combine_all(tx)
    assert one(tx, "select count(*) from pgcombine.wc_values") == 400


def test_packed_and_plain_updates_are_the_same(tx: psycopg.Connection) -> None:
    make_queue(tx)
    assert enqueue_arrays(tx, WORDS) == 300
    add(tx, {"w1": 5, "other": 1})
    backlog, stored = counts(tx)
    assert backlog == 302
    assert stored <= 4 * 2 + 2
    expected = {word: n for word, n in (Counter(TOTALS) + Counter({"w1": 5, "other": 1})).items() if n}
    assert current(tx) == expected
    assert (
        dict(tx.execute("select word, sum(n) from pgcombine.wc_pending group by word").fetchall())["w1"]
        == TOTALS["w1"] + 5
    )
    assert one(tx, "select n from pgcombine.wc_current where word = 'w1'") == expected["w1"]
    status = tx.execute("select sum(s.backlog) from pgcombine.bucket b, pgcombine.bucket_status('wc', b.bucket) s")
    assert status.fetchall() == [(302,)]
    assert sum(taken for _, taken, _, _, _ in combine_all(tx)) == 302
    assert (counts(tx), values(tx)) == ((0, 0), expected)


def test_a_few_stay_plain_rows(tx: psycopg.Connection) -> None:
    make_queue(tx)
    assert enqueue_arrays(tx, WORDS[:31]) == 31
    assert counts(tx) == (31, 31)
    assert enqueue_arrays(tx, []) == 0
    assert one(tx, "select pgcombine.wc_enqueue(null::text[])") == 0


def test_one_bucket_packs_two_and_more(tx: psycopg.Connection) -> None:
    make_queue(tx, buckets=1)
    enqueue_arrays(tx, WORDS[:1])
    assert counts(tx) == (1, 1)
    enqueue_arrays(tx, WORDS[:2])
    assert counts(tx) == (3, 2)
    enqueue_arrays(tx, WORDS[:129])
    assert counts(tx) == (132, 5)
    assert one(tx, "select count(*) from pgcombine.wc_updates where cardinality(pgcombine_0) = 63") == 2
    combine_all(tx)
    assert values(tx) == {
        w: n for w, n in sum((Counter({w: n}) for w, n in [WORDS[0], *WORDS[:2], *WORDS[:129]]), Counter()).items() if n
    }


@pytest.mark.parametrize("buckets", [1, 4])
@pytest.mark.parametrize("words", ["'[0:1]={a,b}'::text[]", "array[array['a'], array['b']]"])
def test_arrays_of_other_shapes(tx: psycopg.Connection, buckets: int, words: str) -> None:
    make_queue(tx, buckets=buckets)
    assert one(tx, f"select pgcombine.wc_enqueue({words}, array[1, 2])") == 2
    combine_all(tx)
    assert values(tx) == {"a": 1, "b": 2}


def test_values_that_are_not_given_take_their_default(tx: psycopg.Connection) -> None:
    make_queue(tx, value=["n bigint count", "top int max"])
    assert one(tx, "select pgcombine.wc_enqueue(array_agg('w' || i % 2)) from generate_series(1, 100) i") == 100
    assert one(tx, "select pgcombine.wc_enqueue(word => array['w0'], top => array[7])") == 1
    combine_all(tx)
    assert rows(tx, "wc_values") == [("w0", 51, 7), ("w1", 50, None)]


def test_nulls_among_values(tx: psycopg.Connection) -> None:
    make_queue(tx, value=["n bigint max"], delete_when=None)
    words, numbers = [f"w{i % 3}" for i in range(99)], [i if i % 3 == 1 else None for i in range(99)]
    tx.execute("select pgcombine.wc_enqueue(%s, %s)", (words, numbers))
    assert counts(tx)[1] < 10
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
    make_queue(tx)
    with pytest.raises(psycopg.Error) as caught, tx.transaction():
        tx.execute("select pgcombine.wc_enqueue(%s, %s::bigint[])", (words, numbers))
    assert caught.value.sqlstate == sqlstate
    assert counts(tx) == (0, 0)


def test_enqueue_packs_as_well(tx: psycopg.Connection) -> None:
    make_queue(tx)
    assert enqueue(tx, [{"word": word, "n": n} for word, n in WORDS]) == 300
    backlog, stored = counts(tx)
    assert backlog == 300
    assert stored <= 8
    combine_all(tx)
    assert values(tx) == {word: n for word, n in TOTALS.items() if n}


def test_who_may_only_insert_packs_as_well(tx: psycopg.Connection) -> None:
    make_queue(tx)
    tx.execute("create role writer_here; grant insert on pgcombine.wc_updates to writer_here; set role writer_here")
    assert enqueue_arrays(tx, WORDS) == 300
    assert enqueue(tx, [{"word": word, "n": n} for word, n in WORDS]) == 300
    with pytest.raises(psycopg.errors.InsufficientPrivilege), tx.transaction():
        tx.execute("select key from pgcombine.quarantined_key")
    tx.execute("reset role; drop owned by writer_here; drop role writer_here")
    backlog, stored = counts(tx)
    assert backlog == 600
    assert stored <= 16


def test_who_may_insert_the_columns_of_the_queue_alone(tx: psycopg.Connection) -> None:
    make_queue(tx)
    tx.execute("create role writer_here; grant insert (word, n) on pgcombine.wc_updates to writer_here")
    tx.execute("set role writer_here")
    assert enqueue_arrays(tx, WORDS) == 300
    tx.execute("reset role; drop owned by writer_here; drop role writer_here")
    assert counts(tx) == (300, 300)


def test_row_security_sees_each_update(tx: psycopg.Connection) -> None:
    make_queue(tx)
    tx.execute("create role writer_here; grant insert on pgcombine.wc_updates to writer_here")
    tx.execute("alter table pgcombine.wc_updates enable row level security")
    tx.execute("create policy mine on pgcombine.wc_updates for insert to writer_here with check (word like 'w%')")
    tx.execute("set role writer_here")
    assert enqueue_arrays(tx, WORDS) == 300
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"), tx.transaction():
        enqueue_arrays(tx, [*WORDS, ("x", 1)])
    tx.execute("reset role; drop owned by writer_here; drop role writer_here")
    assert one(tx, "select pgcombine.backlog('wc')") == 300


@pytest.mark.parametrize(
    "options",
    [
        {"max_backlog": 1000},
        {"buckets": 65},
        {"buckets": 4, "buckets_per_partition": 2},
        {"value": ["n bigint sum", "tags text[] array_union"]},
        {"value": ["n bigint sum", "v int python"]},
    ],
    ids=lambda options: json.dumps(options),
)
def test_where_nothing_is_packed(tx: psycopg.Connection, options: dict[str, Any]) -> None:
    make_queue(tx, **{"buckets": 4, **options})
    assert enqueue(tx, [{"word": word, "n": n} for word, n in WORDS]) == 300
    assert counts(tx) == (300, 300)


@pytest.mark.parametrize("repeated", [True, False], ids=["repeated keys", "unique keys"])
def test_a_packed_backlog_beyond_the_limit(tx: psycopg.Connection, repeated: bool) -> None:
    """Passes unpack portions, and report no key before all of its updates are combined."""
    make_queue(tx, buckets=1, pass_limit=50)
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
    make_queue(tx, buckets=1, pass_limit=50)
    add(tx, {f"w{i}": 1 for i in range(500)})
    for step in range(40):
        enqueue_arrays(tx, [(f"new{step}", 1), (f"newer{step}", 1)])
        tx.execute("select pgcombine.combine('wc', 0)")
    assert one(tx, "select pgcombine.backlog('wc')") < 50
    assert one(tx, "select count(*) from pgcombine.wc_values") > 530


def test_a_row_packed_for_another_number_of_buckets_far_behind_in_a_backlog(tx: psycopg.Connection) -> None:
    make_queue(tx, pass_limit=5)
    here = word_in(tx, 0)
    packed = (
        "insert into pgcombine.wc_updates (word, n, pgcombine_packed, pgcombine_0, pgcombine_1) "
        "select %s, 1, %s, %s, array[1] from generate_series(1, %s)"
    )
    tx.execute(packed, (here, 4, [here], 14))
    tx.execute(packed, (here, 2, [word_in(tx, 1)], 1))
    tx.execute(packed, (here, 4, [here], 700))
    combine_all(tx)
    assert values(tx) == {here: 1429, word_in(tx, 1): 1}


def test_a_poison_key_among_packed_ones(conn: psycopg.Connection) -> None:
    make_queue(conn, value=["n smallint sum"], buckets=1)
    words = [f"w{i}" for i in range(50)] + ["bad"] * 50
    conn.execute("select pgcombine.wc_enqueue(%s, %s::smallint[])", (words, [1] * 50 + [30000] * 50))
    assert counts(conn)[1] < 5
    with pytest.raises(psycopg.errors.NumericValueOutOfRange):
        conn.execute("select pgcombine.combine('wc', 0)")
    poison = one(conn, "select hash_record_extended(row('bad'::text), 0)")
    assert one(conn, "select pgcombine.quarantine_key('wc', 0, %s, 5, '22003', 'out of range')", poison) == 50
    conn.execute("select pgcombine.wc_enqueue(%s, %s::smallint[])", (words, [1] * 50 + [30000] * 50))
    combine_all(conn)
    assert values(conn) == {f"w{i}": 2 for i in range(50)}
    assert one(conn, "select updates from pgcombine.quarantined_key") == 100


def test_a_key_is_quarantined_after_others_were_packed_with_it(conn: psycopg.Connection) -> None:
    """Committed before the key was quarantined, seen by a pass only after it."""
    make_queue(conn, buckets=1)
    enqueue_arrays(conn, [("a", 1), ("b", 1)] * 50)
    conn.execute(
        "with listed as (insert into pgcombine.quarantined_key (queue, key, updates, attempts, sqlstate, error) "
        "values ('wc', '{}', 0, 5, 'XX000', 'a test') returning id) "
        "insert into pgcombine.wc_quarantine_keys select 'b', id from listed"
    )
    combine_all(conn)
    assert (values(conn), counts(conn)) == ({"a": 50}, (0, 0))
    assert one(conn, "select updates from pgcombine.quarantined_key") == 50
    assert one(conn, "select pgcombine.quarantine_retry('wc')") == 50
    combine_all(conn)
    assert values(conn) == {"a": 50, "b": 50}


def test_a_key_of_another_bucket_is_quarantined_after_the_pass_has_looked(conn: psycopg.Connection) -> None:
    """From then on passes take plain rows only: what is packed must not be left to the next one."""
    make_queue(conn)
    enqueue_arrays(conn, WORDS)
    look = "select unpack from pgcombine.next_pass('wc', 0, %s)"
    assert one(conn, look, False) is None
    conn.execute(
        "insert into pgcombine.quarantined_key (queue, key, updates, attempts, sqlstate, error) "
        "values ('wc', '{}', 0, 5, 'XX000', 'a test')"
    )
    assert one(conn, look, False) == "all"
    assert one(conn, look, True) is None


@pytest.mark.parametrize("buckets", [3, 8, 2, 65])
def test_rebucket_with_packed_updates_pending(conn: psycopg.Connection, buckets: int) -> None:
    make_queue(conn)
    enqueue_arrays(conn, WORDS)
    conn.execute("select pgcombine.rebucket('wc', %s)", (buckets,))
    enqueue_arrays(conn, WORDS)
    assert one(conn, "select pgcombine.backlog('wc')") == 600
    combine_all(conn)
    assert values(conn) == {word: 2 * n for word, n in TOTALS.items() if n}
    assert one(conn, "select count(*) from pgcombine.verify('wc')") == 0


def test_rebucket_with_packed_updates_pending_to_partitions_that_are_shared(conn: psycopg.Connection) -> None:
    """The partitions stay; of what is packed in them, buckets couldn't be told."""
    make_queue(conn)
    enqueue_arrays(conn, WORDS)
    conn.execute("select pgcombine.rebucket('wc', 8, 2)")
    backlogs = conn.execute("select s.backlog from generate_series(0, 7) b, pgcombine.bucket_status('wc', b) s")
    assert sorted(backlog for (backlog,) in backlogs)[0] > 0
    assert one(conn, "select sum(s.backlog) from generate_series(0, 7) b, pgcombine.bucket_status('wc', b) s") == 300
    combine_all(conn)
    assert values(conn) == {word: n for word, n in TOTALS.items() if n}


def test_a_row_packed_for_another_number_of_buckets(conn: psycopg.Connection) -> None:
    """As one that was enqueued by who began before rebucket ended: its updates are of several buckets."""
    make_queue(conn, buckets=2)
    conn.execute("select pgcombine.rebucket('wc', 4)")
    words = [word_in(conn, bucket, start=1000 * bucket) for bucket in range(4)]
    conn.execute(
        "insert into pgcombine.wc_updates (word, n, pgcombine_packed, pgcombine_0, pgcombine_1) "
        "values (%s, 1, 3, %s, %s)",
        (words[0], words[1:], [1, 1, 1]),
    )
    assert current(conn) == dict.fromkeys(words, 1)
    combine_all(conn)
    assert (values(conn), counts(conn)) == (dict.fromkeys(words, 1), (0, 0))


@pytest.mark.parametrize("layout", [{"buckets": 8, "buckets_per_partition": 2}, {"buckets": 68}])
def test_a_row_packed_before_a_layout_in_which_nothing_is(conn: psycopg.Connection, layout: dict[str, int]) -> None:
    make_queue(conn)
    options = {"buckets_per_partition": 1, **layout}
    conn.execute("select pgcombine.rebucket('wc', %(buckets)s, %(buckets_per_partition)s)", options)
    words = [word_in(conn, bucket, start=1000 * bucket) for bucket in range(8)]
    conn.execute(
        "insert into pgcombine.wc_updates (word, n, pgcombine_packed, pgcombine_0, pgcombine_1) "
        "values (%s, 1, 4, %s, %s)",
        (words[0], words[1:], [1] * 7),
    )
    assert current(conn) == dict.fromkeys(words, 1)
    combine_all(conn)
    assert (values(conn), counts(conn)) == (dict.fromkeys(words, 1), (0, 0))


def test_unpacked_updates_keep_their_age(conn: psycopg.Connection) -> None:
    make_queue(conn, buckets=1)
    enqueue_arrays(conn, WORDS)
    before = one(conn, "select moves from pgcombine.bucket where queue = 'wc'")
    assert one(conn, "select pgcombine.unpack('wc', 0, false)") > 0
    assert counts(conn) == (300, 300)
    moves, since = conn.execute("select moves, since from pgcombine.bucket where queue = 'wc'").fetchall()[0]
    assert moves == before + 1
    assert since is not None


def test_verify_finds_what_is_packed_wrongly(tx: psycopg.Connection) -> None:
    make_queue(tx)
    enqueue_arrays(tx, WORDS)
    assert tx.execute("select problem from pgcombine.verify('wc')").fetchall() == []
    here, elsewhere = word_in(tx, 0), word_in(tx, 1)
    for words, numbers in (([here, elsewhere, elsewhere], [1, 1, 1]), ([here, here], [1])):
        tx.execute(
            "insert into pgcombine.wc_updates (word, n, pgcombine_packed, pgcombine_0, pgcombine_1) "
            "values (%s, 1, 4, %s, %s)",
            (here, words, numbers),
        )
    assert [problem for (problem,) in tx.execute("select problem from pgcombine.verify('wc')")] == [
        "1 packed rows whose arrays are of different lengths",
        "bucket 0 has 2 packed updates of keys that belong elsewhere",
    ]


LONG = "".join(chr(0x4E00 + i) for i in range(900))  # 2700 bytes that hardly compress
BROKEN: dict[str, tuple[Any, Any]] = {
    "a null key": (["b", None], [1, 1]),
    "a long key": (["b", LONG], [1, 1]),
    "a long key among equal ones": ([LONG] * 20, [1] * 20),
    "too many values": (["b"], [1, 1]),
    "too many keys": (["b", "c"], [1]),
    "no array of values": (["b"], None),
    "empty arrays": ([], []),
    "two dimensions": ([["b", None]], [[1, 1]]),
}
BROKEN_ROW = (
    "insert into pgcombine.wc_updates (word, n, pgcombine_packed, pgcombine_0, pgcombine_1) "
    "values (%s, 7, 4, %s::text[], %s::bigint[])"
)


def flat(words: list[Any]) -> list[Any]:
    return [word for item in words for word in (item if isinstance(item, list) else [item])]


def set_aside(conn: psycopg.Connection) -> list[tuple[Any, ...]]:
    found = conn.execute("select key -> 'pgcombine_packed', updates, sqlstate from pgcombine.quarantine order by since")
    return found.fetchall()


@pytest.mark.parametrize("arrays", BROKEN.values(), ids=BROKEN)
def test_a_row_that_cant_be_unpacked_is_set_aside_alone(tx: psycopg.Connection, arrays: tuple[Any, Any]) -> None:
    make_queue(tx)
    enqueue_arrays(tx, WORDS)
    add(tx, {"plain": 1})
    tx.execute(BROKEN_ROW, (word_in(tx, 0), *arrays))
    combine_all(tx)
    assert values(tx) == {word: n for word, n in TOTALS.items() if n} | {"plain": 1}
    ((updates, count, sqlstate),) = set_aside(tx)
    assert (len(updates), sqlstate) == (count, "PC004")
    assert updates[0] == {"word": word_in(tx, 0), "n": 7}
    given = [update["word"] for update in updates[1:] if update["word"] is not None]
    assert given == [word for word in flat(arrays[0]) if word is not None]
    enqueue_arrays(tx, WORDS)  # and later ones aren't kept waiting
    combine_all(tx)
    assert values(tx) == {word: 2 * n for word, n in TOTALS.items() if n} | {"plain": 1}
    assert tx.execute("select problem from pgcombine.verify('wc')").fetchall() == []


@pytest.mark.parametrize("buckets", [3, 65])
def test_rebucket_sets_aside_what_cant_be_unpacked(conn: psycopg.Connection, buckets: int) -> None:
    make_queue(conn)
    enqueue_arrays(conn, WORDS)
    for arrays in BROKEN.values():
        conn.execute(BROKEN_ROW, (word_in(conn, 0), *arrays))
    conn.execute("select pgcombine.rebucket('wc', %s)", (buckets,))
    assert len(set_aside(conn)) == len(BROKEN)
    combine_all(conn)
    assert values(conn) == {word: n for word, n in TOTALS.items() if n}
    assert conn.execute("select problem from pgcombine.verify('wc')").fetchall() == []


def test_what_can_be_done_with_a_row_that_was_set_aside(tx: psycopg.Connection) -> None:
    make_queue(tx)
    for arrays in (["b", None], [1, 1]), (["b", "c"], [1]):
        tx.execute(BROKEN_ROW, (word_in(tx, 0), *arrays))
    combine_all(tx)
    first, second = [key for (key,) in tx.execute("select key from pgcombine.quarantine order by updates, key ->> 0")]
    names_none = [k for k in (first, second) if None in [u["word"] for u in k["pgcombine_packed"]]]
    assert one(tx, "select pgcombine.quarantine_retry('wc')") == 0  # those alone that may be combined
    assert len(set_aside(tx)) == 2
    with pytest.raises(psycopg.errors.NotNullViolation), tx.transaction():
        tx.execute("select pgcombine.quarantine_retry('wc', %s)", (Jsonb(names_none[0]),))
    assert one(tx, "select pgcombine.quarantine_drop('wc', %s)", Jsonb(names_none[0])) == 3
    (rest,) = [k for k in (first, second) if k != names_none[0]]
    assert one(tx, "select pgcombine.quarantine_retry('wc', %s)", Jsonb(rest)) == 3
    with pytest.raises(psycopg.Error, match="isn't quarantined"), tx.transaction():
        tx.execute("select pgcombine.quarantine_retry('wc', %s)", (Jsonb(rest),))
    combine_all(tx)
    assert values(tx) == {word_in(tx, 0): 7, "b": 1, "c": None} or values(tx)["b"] == 1
    tx.execute(BROKEN_ROW, (word_in(tx, 0), [None], [1]))
    combine_all(tx)
    assert one(tx, "select pgcombine.quarantine_drop('wc')") == 2
    assert set_aside(tx) == []
