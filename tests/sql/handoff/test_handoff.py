"""The SQL functions of hinted handoff, each tested on one server. tests/handoff has the tests with several."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.types.json import Jsonb
from support.queues import combine_all, current, make_queue, one, rows
from support.states import raises_state

from pgcombine.database.sqlfiles import query
from pgcombine.handoff.replicated import new_token

PAYLOAD = """{"{fluo,\\"sp ark\\",x}","{1,2,3}"}"""


def test_token_contains_its_time(tx: psycopg.Connection) -> None:
    # The UUID is the example in RFC 9562, appendix A.6.
    told = one(tx, "select pgcombine_internal.handoff_time('017F22E2-79B0-7CC3-98C4-DC0C0C07398F')")
    assert told == datetime(2022, 2, 22, 19, 22, 22, tzinfo=UTC)
    assert one(tx, "select pgcombine_internal.handoff_time(%s)", uuid4()) is None
    token = new_token()
    assert token.version == 7
    assert token.variant == "specified in RFC 4122"
    assert (
        abs(one(tx, "select extract(epoch from pgcombine_internal.handoff_time(%s) - clock_timestamp())", token)) < 60
    )


def test_tokens_have_a_partition_a_day(tx: psycopg.Connection) -> None:
    for _ in range(2):
        tx.execute("select pgcombine_internal.handoff_partition('017F22E2-79B0-7CC3-98C4-DC0C0C07398F')")
    bounds = one(tx, "select pg_get_expr(relpartbound, oid) from pg_class where relname = 'handoff_token_20220222'")
    assert bounds == (
        "FOR VALUES FROM ('017f1eba-4c00-0000-0000-000000000000') TO ('017f23e0-a800-0000-0000-000000000000')"
    )


PARTITIONS = (
    "select array_agg(inhrelid::regclass::text) from pg_inherits where inhparent = 'pgcombine.handoff_token'::regclass"
)


def token_of(tx: psycopg.Connection, age: str) -> UUID:
    """A token whose time is ``age`` before the server's time. A negative age is in the future."""
    moment = one(tx, "select (extract(epoch from now() - %s::interval) * 1000)::bigint", age)
    return UUID(int=moment << 80 | 0x7 << 76 | 0x2 << 62 | secrets.randbits(62))


@pytest.mark.wc
@pytest.mark.parametrize(
    "zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago"]
)  # the date differs from UTC in one of them
def test_digests_do_not_depend_on_the_time_zone(conn: psycopg.Connection, zone: str) -> None:
    conn.execute("select pgcombine_internal.handoff_handshake('a')")
    for day in range(17):  # the retention is 14 days
        token = token_of(conn, f"{day} days")
        conn.execute("select pgcombine_internal.handoff_partition(%s)", (token,))
        conn.execute(
            "insert into pgcombine.handoff_token (token, queue, digest) values (%s, 'wc', %s)", (token, uuid4())
        )
    digests = "select * from pgcombine_internal.handoff_digests('b') order by day"
    conn.execute("set time zone 'UTC'")
    found = conn.execute(digests).fetchall()
    assert len(found) == 14
    conn.execute(sql.SQL("set time zone {}").format(zone))
    assert conn.execute(digests).fetchall() == found


@pytest.mark.wc
def test_only_recent_tokens_create_partitions(conn: psycopg.Connection) -> None:
    conn.execute("select pgcombine_internal.handoff_handshake('a')")
    claim = "select status from pgcombine_internal.handoff_store_tokens('wc', %s, %s, '{null}')"
    for ahead in range(2, 302):
        with raises_state("PC041"), conn.transaction():
            conn.execute(claim, ([token_of(conn, f"-{ahead} days")], [uuid4()]))
    for age in ("15 days", "300 days", "20000 days"):
        assert one(conn, claim, [token_of(conn, age)], [uuid4()]) == "expired"
    assert one(conn, PARTITIONS) is None
    for age in ("100 hours", "5 hours", "-23 hours"):
        assert one(conn, claim, [token_of(conn, age)], [uuid4()]) == "applied"
    assert len(one(conn, PARTITIONS)) in (2, 3)


@pytest.mark.wc
def test_empty_partitions_of_future_days_are_dropped(conn: psycopg.Connection) -> None:
    """A clock that was ahead leaves these empty partitions. Partitions with tokens stay, to detect duplicate writes."""
    conn.execute("select pgcombine_internal.handoff_handshake('a')")
    conn.execute("select pgcombine_internal.handoff_clean_up()")
    near = one(conn, PARTITIONS)
    assert len(near) == 3  # today and the next two days
    used = token_of(conn, "-10 days")
    conn.execute("select pgcombine_internal.handoff_partition(%s)", (used,))
    conn.execute("insert into pgcombine.handoff_token (token, queue, digest) values (%s, 'wc', %s)", (used, uuid4()))
    kept = one(conn, PARTITIONS)
    for ahead in (3, 4, 300):
        conn.execute("select pgcombine_internal.handoff_partition(%s)", (token_of(conn, f"-{ahead} days"),))
    assert len(one(conn, PARTITIONS)) == 7
    conn.execute("select pgcombine_internal.handoff_clean_up()")
    assert sorted(one(conn, PARTITIONS)) == sorted(kept)
    conn.execute("delete from pgcombine.handoff_token where token = %s", (used,))
    conn.execute("select pgcombine_internal.handoff_clean_up()")
    assert sorted(one(conn, PARTITIONS)) == sorted(near)


def test_placement_is_stable(tx: psycopg.Connection) -> None:
    """Slots are placed by the documented rule. If a server leaves, only its slots move."""
    from hashlib import md5

    def placed(slot: int, servers: str, replicas: int) -> list[str]:
        return sorted(sorted(servers, key=lambda name: md5(f"{slot}/{name}".encode()).hexdigest())[:replicas])

    for slot in range(256):
        told = one(tx, "select pgcombine_internal.handoff_placement(%s, '{e,d,c,b,a}', 3)", slot)
        assert told == placed(slot, "abcde", 3)
        without = one(tx, "select pgcombine_internal.handoff_placement(%s, '{a,b,c,d}', 3)", slot)
        assert without == told or set(told) - set(without) == {"e"}


@pytest.mark.wc
def test_a_payload_is_routed_by_key(conn: psycopg.Connection) -> None:
    conn.execute("select pgcombine_internal.handoff_handshake('a')")
    holders = conn.execute(
        "select number, holders "
        "from pgcombine_internal.handoff_holders('wc', '{\"{fluo,\\\"sp ark\\\",x}\"}', '{a,b,c,d}', 2)"
    ).fetchall()
    words = ["fluo", "sp ark", "x"]
    for server in "abcd":
        conn.execute("update pgcombine.handoff_server set name = %s", (server,))
        expected = [{"word": words[number - 1], "n": str(number)} for number, names in holders if server in names]
        own = one(conn, "select pgcombine_internal.handoff_local_updates('wc', %s, '{a,b,c,d}', 2)", PAYLOAD)
        assert (own is None) == (not expected)
        assert one(conn, "select coalesce(pgcombine_internal.handoff_content('wc', %s), '[]')", own) == expected
    assert one(conn, "select pgcombine_internal.handoff_local_updates('wc', %s, '{a,b}', 2)", PAYLOAD) == PAYLOAD
    all_slots = list(range(256))
    local = "select pgcombine_internal.handoff_local_updates('wc', %s, null, null, %s)"
    assert one(conn, local, PAYLOAD, all_slots) is None


@pytest.mark.wc
def test_a_token_that_comes_twice_is_applied_once(conn: psycopg.Connection) -> None:
    conn.execute("select pgcombine_internal.handoff_handshake('a')")
    token, digest, other = new_token(), uuid4(), uuid4()
    statuses = conn.execute(
        "select status from pgcombine_internal.handoff_apply(null, 'wc', null, %s, %s, '{null,null,null}', %s)",
        ([token] * 3, [digest, digest, other], [PAYLOAD] * 3),
    ).fetchall()
    assert sorted(statuses) == [("applied",), ("conflict",), ("duplicate",)]
    assert current(conn) == {"fluo": 1, "sp ark": 2, "x": 3}


@pytest.mark.parametrize("name", ["number", "c", "t", "u", "slot"])
def test_key_columns_may_have_any_name(tx: psycopg.Connection, name: str) -> None:
    make_queue(tx, key=[f"{name} text"])
    tx.execute("select pgcombine_internal.handoff_handshake('a')")
    holders = tx.execute(
        "select * from pgcombine_internal.handoff_holders('wc', '{\"{x,y}\"}', '{a,b,c}', 2)"
    ).fetchall()
    assert [number for number, _ in holders] == [1, 2]


def test_slot_of_an_enum_depends_on_its_label(tx: psycopg.Connection) -> None:
    """PostgreSQL's own hash of an enum uses the OID, which differs between servers."""
    keys = one(
        tx,
        """select array['{a,b,c}', array['{a}', '{a,b}', '{}']::text, array['(a,1)', '(b,1)', '(c,)']::text,
            '{1,2,3}']::text""",
    )
    placed, copied = [], []
    for queue, labels in (("one", "'a', 'b', 'c'"), ("two", "'b', 'c', 'a'")):
        tx.execute(f"create type {queue} as enum ({labels})")
        tx.execute(f"create type {queue}_pair as (kind {queue}, number int)")
        make_queue(tx, queue, key=[f"kind {queue}", f"kinds {queue}[]", f"pair {queue}_pair", "number int"])
        holders = "select * from pgcombine_internal.handoff_holders(%s, %s, '{a,b,c,d,e}', 2)"
        placed.append(tx.execute(holders, (queue, keys)).fetchall())
        update = {"kind": "a", "kinds": ["a"], "pair": {"kind": "a", "number": 1}, "number": 1}
        tx.execute("select pgcombine.enqueue(%s, %s)", (queue, Jsonb([update])))
        combine_all(tx, queue)
        half = (
            "select values_sql "
            "from pgcombine_internal.handoff_copy_sql(%s, array(select generate_series(0, 255, 2)), 'b')"
        )
        copied.append(tx.execute(one(tx, half, queue)).fetchall())
    assert placed[0] == placed[1]
    assert copied[0] == copied[1]


@pytest.mark.wc
def test_unfit_updates_are_found(conn: psycopg.Connection) -> None:
    words = ["x" * 3000 if i == 77 else f"w{i}" for i in range(100)]
    numbers = ["much" if i == 3 else "1" for i in range(100)]
    payload = one(conn, "select array[%s::text[]::text, %s::text[]::text]::text", words, numbers)
    found = conn.execute("select number, state from pgcombine_internal.handoff_unfit('wc', %s)", (payload,)).fetchall()
    assert sorted(found) == [(4, "22P02"), (78, "23514")]
    assert rows(conn, "wc_pending") == []


@pytest.mark.wc
def test_shape_depends_on_the_columns(conn: psycopg.Connection) -> None:
    shape = one(conn, "select pgcombine_internal.handoff_shape('wc')")
    make_queue(conn, "same", buckets=2, delete_when=None)
    assert one(conn, "select pgcombine_internal.handoff_shape('same')") == shape
    for name, definition in {
        "a": {"key": ["wort text"]},
        "b": {"value": ["n bigint max"]},
        "c": {"value": ["n int sum"]},
    }.items():
        make_queue(conn, name, **definition)
        assert one(conn, "select pgcombine_internal.handoff_shape(%s)", name) != shape
    assert one(conn, "select pgcombine_internal.handoff_shape('none')") is None


@pytest.mark.parametrize(
    ("call", "state"),
    [
        ("handoff_check(gen_random_uuid(), 'wc', null)", "PC042"),
        ("handoff_register('a b', '')", "PC045"),
        ("handoff_register('a', '', max_rows => 0)", "PC045"),
        ("handoff_verify_identity('x', gen_random_uuid(), 1)", "PC045"),
        ("handoff_unregister('x')", "PC045"),
        ("handoff_discard('x', 'y')", "PC045"),
    ],
)
def test_invalid_calls_are_refused(tx: psycopg.Connection, call: str, state: str) -> None:
    with raises_state(state):
        tx.execute(f"select pgcombine_internal.{call}")


def test_a_server_has_one_name(tx: psycopg.Connection) -> None:
    first = one(tx, "select id from pgcombine_internal.handoff_handshake('a')")
    assert one(tx, "select id from pgcombine_internal.handoff_handshake('a')") == first
    with raises_state("PC042"), tx.transaction():
        tx.execute("select pgcombine_internal.handoff_handshake('b')")
    tx.execute("select pgcombine_internal.handoff_identify('b')")
    assert tx.execute("select epoch, id <> %s from pgcombine_internal.handoff_handshake('b')", (first,)).fetchone() == (
        2,
        True,
    )


def test_a_server_is_not_its_own_replica(tx: psycopg.Connection) -> None:
    tx.execute("select pgcombine_internal.handoff_handshake('a')")
    with raises_state("PC045"):
        tx.execute("select pgcombine_internal.handoff_register('a', 'host=a')")


def test_rebuild_copies_each_slot_from_the_first_source(tx: psycopg.Connection) -> None:
    """The source of a slot is the first of the given servers that has the slot. It is null if none has it."""
    sources = query("handoff_sources").encode()
    assert tx.execute(sources, ("a", ["a", "b", "c"], 3, ["c", "b"])).fetchall() == [("c", None)]
    assert tx.execute(sources, ("a", None, None, ["c", "b"])).fetchall() == [("c", None)]
    found = dict(tx.execute(sources, ("a", list("abcde"), 3, list("bcd"))).fetchall())
    placed = dict(
        tx.execute(
            "select s, pgcombine_internal.handoff_placement(s, '{a,b,c,d,e}', 3) from generate_series(0, 255) s"
        ).fetchall()
    )
    assert sorted(slot for slots in found.values() for slot in slots) == [
        s for s, names in placed.items() if "a" in names
    ]
    for slot in found["c"]:
        assert "c" in placed[slot]
        assert "b" not in placed[slot]
    lacking = dict(tx.execute(sources, ("a", list("abcde"), 3, ["b"])).fetchall())
    assert sorted(lacking[None]) == [s for s, names in placed.items() if "a" in names and "b" not in names]


def test_new_need_of_repair_invalidates_a_running_rebuild(tx: psycopg.Connection) -> None:
    tx.execute("select pgcombine_internal.handoff_register('b', 'host=b')")
    repair = uuid4()
    tx.execute("select pgcombine_internal.handoff_require_repair('b', 'first')")
    tx.execute("select pgcombine_internal.handoff_require_repair('b', 'second')")
    tx.execute("select pgcombine_internal.handoff_repair_begin('b', 'host=b', %s)", (repair,))
    state = "select needs_repair, repairing from pgcombine.handoff_replica"
    assert tx.execute(state).fetchall() == [("first", repair)]
    tx.execute("select pgcombine_internal.handoff_require_repair('b', 'third')")
    assert tx.execute(state).fetchall() == [("third", None)]
    ended = "select pgcombine_internal.handoff_repair_end('b', %s, 2, %s, '{c}', '{}')"
    assert one(tx, ended, uuid4(), repair) is False
    tx.execute("select pgcombine_internal.handoff_repair_begin('b', 'host=b', %s)", (repair,))
    assert one(tx, ended, uuid4(), repair) is True
    assert tx.execute(state).fetchall() == [(None, None)]


@pytest.mark.wc
def test_updates_of_several_payloads_are_appended(conn: psycopg.Connection) -> None:
    payloads = [PAYLOAD, "{}", """{"{NULL,\\"{\\\\\\"y}\\"}","{4,NULL}"}""".replace("NULL,", "z,", 1)]
    statement = one(conn, "select pgcombine_internal.handoff_insert_sql('wc')")
    conn.execute(statement.replace("$1", "%s::text[]"), (payloads,))
    expected = [("fluo", 1), ("sp ark", 2), ("x", 3), ("z", 4), ('{"y}', None)]
    found = conn.execute("select word, n from pgcombine.wc_pending").fetchall()
    assert sorted(found, key=str) == sorted(expected, key=str)
