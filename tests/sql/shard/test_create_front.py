"""Fronts: a front is used like a queue, and its shards are queues of other databases."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import psycopg
import pytest
from psycopg.types.json import Jsonb
from sqlalchemy import NullPool, create_engine
from support.fronts import add_mapping, add_node, connected, make_front, make_shards
from support.queues import add, combine_all, got, make_queue, one, values
from support.servers import with_contrib
from support.states import raises_state
from support.wait import eventually

from pgcombine import CombineQueue, schema
from pgcombine.errors import InvalidDefinitionError, InvalidUpdateError, QueueNotFoundError

pytestmark = with_contrib

CURRENT = "select word, n from pgcombine.wc_current order by word"
ONCE = "select pgcombine.enqueue_once('wc', %s, %s)"


def current(conn: psycopg.Connection) -> dict[str, int]:
    return dict(conn.execute(CURRENT).fetchall())


def combine_nodes(nodes: list[str]) -> None:
    for dsn in nodes:
        with connected(dsn) as conn:
            for (queue,) in conn.execute("select queue from pgcombine.queue order by queue").fetchall():
                combine_all(conn, queue)


def plan(conn: psycopg.Connection, query: str) -> list[str]:
    return [line for (line,) in conn.execute(f"explain (costs off) {query}".encode()).fetchall()]


def test_front_is_used_as_a_queue(front: psycopg.Connection, nodes: list[str]) -> None:
    words = [f"w{i}" for i in range(40)]
    add(front, dict.fromkeys(words, 1))
    assert one(front, "select pgcombine.enqueue('wc', %s)", Jsonb([{"word": word} for word in words])) == 40
    assert one(front, "select pgcombine.wc_enqueue(%s::text[], %s::bigint[])", words, [5] * 40) == 40
    assert one(front, "select pgcombine.wc_enqueue(array['w0', 'w0'])") == 2
    expected = dict.fromkeys(words, 6)
    assert current(front) == got(front, [*words, "unknown"]) == expected
    assert one(front, "select count(*) from pgcombine.wc_values") == 0
    combine_nodes(nodes)
    assert dict(front.execute("select word, n from pgcombine.wc_values").fetchall()) == expected
    assert current(front) == expected


def test_front_takes_no_contributions(front: psycopg.Connection) -> None:
    with raises_state("PC003", "elsewhere", "each of them"):
        front.execute("select pgcombine.contribute('wc', 's', '[]')")
    with pytest.raises(InvalidDefinitionError, match="elsewhere"):
        CombineQueue("wc").contribute(front, "s", [("a", 1)])


def test_python_uses_a_front_as_a_queue(front: psycopg.Connection, dsn: str, nodes: list[str]) -> None:
    queue = CombineQueue("wc")
    words = [f"w{i}" for i in range(40)]
    assert queue.enqueue(front, ({"word": word, "n": 2} for word in words)) == 40
    assert queue.enqueue(front, [("w0", 3), {"word": "w1"}]) == 2
    for appended in 40, 0:
        assert queue.enqueue(front, [(word, 10) for word in words], token="a") == appended
    url = dsn.replace("postgresql:", "postgresql+psycopg:", 1)
    with create_engine(url, poolclass=NullPool).begin() as connection:
        assert queue.enqueue(connection, [("w2", 1)], token="a") == 0
        assert queue.enqueue(connection, [("w2", 1)], token="b") == 1
    with pytest.raises(InvalidUpdateError):
        queue.enqueue(front, [{"wordd": "w0"}], token="c")
    expected = dict.fromkeys(words, 12) | {"w0": 15, "w2": 13}
    assert queue.get(front, [*words, "unknown"]) == expected
    combine_nodes(nodes)
    assert dict(queue.values(front)) == expected
    assert queue.get(front, words) == expected
    with pytest.raises(QueueNotFoundError):
        CombineQueue("wd").enqueue(front, [("a", 1)], token="a")


def test_hash_of_a_key_says_which_shard_has_it(front: psycopg.Connection, nodes: list[str]) -> None:
    words = [f"w{i}" for i in range(40)]
    add(front, dict.fromkeys(words, 1))
    combine_nodes(nodes)
    shard_of = {word: one(front, "select pgcombine.shard_of('wc', %s)", word) for word in words}
    found: dict[str, int] = {}
    for number, dsn in enumerate(nodes):
        with connected(dsn) as conn:
            for shard in (number, number + 2):
                shard_words = values(conn, f"wc_{shard:02}")
                assert not found.keys() & shard_words.keys()
                found |= dict.fromkeys(shard_words, shard)
    assert found == shard_of
    assert set(found.values()) == {0, 1, 2, 3}


def test_query_for_one_key_scans_one_node(front: psycopg.Connection) -> None:
    (scan,) = plan(front, "select n from pgcombine.wc_current where word = 'w1'")
    assert scan.startswith("Foreign Scan on wc_current_")


def test_aggregate_asks_all_nodes_at_the_same_time(front: psycopg.Connection) -> None:
    lines = plan(front, "select count(*), sum(n) from pgcombine.wc_current")
    assert sum("Async Foreign Scan" in line for line in lines) == 4


def test_retry_with_a_token_appends_what_is_missing(front: psycopg.Connection) -> None:
    shards = {one(front, "select pgcombine.shard_of('wc', %s)", f"w{i}"): f"w{i}" for i in range(40)}
    updates = [{"word": word, "n": 1} for word in shards.values()]
    # as if the front had died after the commits on two shards
    assert one(front, ONCE, "t1", Jsonb(updates[:2])) is True
    assert one(front, ONCE, "t1", Jsonb(updates)) is True
    assert one(front, ONCE, "t1", Jsonb(updates)) is False
    assert current(front) == dict.fromkeys(shards.values(), 1)


def test_call_with_the_same_token_waits_for_the_first(front: psycopg.Connection, dsn: str) -> None:
    update = Jsonb({"word": "a", "n": 1})
    waiting = (
        "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and application_name = 'postgres_fdw'"
    )

    def call() -> object:
        with connected(dsn) as other:
            try:
                return one(other, ONCE, "t1", update)
            except psycopg.errors.SerializationFailure:  # the snapshot on the node is older than the token
                return one(other, ONCE, "t1", update)

    with ThreadPoolExecutor() as pool, connected(dsn) as observer:
        with front.transaction():
            assert one(front, ONCE, "t1", update) is True
            second = pool.submit(call)
            eventually(lambda: one(observer, waiting) == 1)
        assert second.result(60) is False
    assert current(front) == {"a": 1}


@pytest.mark.parametrize(
    ("token", "updates"),
    [
        ("", [{"word": "a"}]),
        (None, [{"word": "a"}]),
        ("t", [{"wort": "a"}]),
        ("t", [{"n": 1}]),
        ("t", 7),
    ],
)
def test_front_refuses_what_a_queue_refuses(front: psycopg.Connection, token: str | None, updates: object) -> None:
    with raises_state("PC004"):
        front.execute(ONCE, (token, Jsonb(updates)))


def test_unknown_name_is_an_unknown_queue(front: psycopg.Connection) -> None:
    for call in ("enqueue('wx', '[]')", "enqueue_once('wx', 't', '[]')", "shard_of('wx', 'a')"):
        with raises_state("PC001"):
            front.execute(f"select pgcombine.{call}".encode())


def test_keys_of_several_columns_are_hashed_together(conn: psycopg.Connection, nodes: list[str]) -> None:
    make_front(conn, nodes, key=["day date", 'page text collate "C"'], value=["n int max", "at date max"])
    conn.execute("insert into pgcombine.wc_updates values ('2026-11-25', 'a', 1, '2026-11-25')")
    conn.execute(
        "insert into pgcombine.wc_updates (day, page, n) values ('2026-11-25', 'a', 7), ('2026-11-26', 'a', 2)"
    )
    assert conn.execute("select day::text, page, n, at::text from pgcombine.wc_current order by day").fetchall() == [
        ("2026-11-25", "a", 7, "2026-11-25"),
        ("2026-11-26", "a", 2, None),
    ]
    assert one(conn, "select pgcombine.shard_of('wc', '2026-11-25', 'a')") in range(4)
    with raises_state("PC004"):
        conn.execute("select pgcombine.shard_of('wc', 'a')")


def taken_by_a_queue(front: psycopg.Connection, nodes: list[str]) -> None:
    make_queue(front)


def missing(front: psycopg.Connection, nodes: list[str]) -> None:
    with connected(nodes[1]) as conn:
        conn.execute("select pgcombine.drop_queue('wc_01')")


def twice(front: psycopg.Connection, nodes: list[str]) -> None:
    make_shards(nodes[1], [0])


def other_columns(front: psycopg.Connection, nodes: list[str]) -> None:
    missing(front, nodes)
    make_shards(nodes[1], [1], value=["n bigint max"])


def other_settings(front: psycopg.Connection, nodes: list[str]) -> None:
    missing(front, nodes)
    make_shards(nodes[1], [1], delete_when="n < 0")


def common_divisor(front: psycopg.Connection, nodes: list[str]) -> None:
    missing(front, nodes)
    make_shards(nodes[1], [1], buckets=6)


def too_many(front: psycopg.Connection, nodes: list[str]) -> None:
    make_shards(nodes[1], [4])


@pytest.mark.parametrize(
    ("prepare", "call", "sqlstate"),
    [
        (None, "'wc', '{}'", "PC003"),
        (None, "'wc', '{n0,n7}'", "PC003"),
        (None, "'W', '{n0}'", "PC003"),
        (None, "'wc', '{n0,n1}', 5", "PC003"),
        (taken_by_a_queue, "'wc', '{n0,n1}'", "PC002"),
        (missing, "'wc', '{n0,n1}'", "PC003"),
        (twice, "'wc', '{n0,n1}'", "PC003"),
        (other_columns, "'wc', '{n0,n1}'", "PC003"),
        (other_settings, "'wc', '{n0,n1}'", "PC003"),
        (common_divisor, "'wc', '{n0,n1}'", "PC003"),
        (too_many, "'wc', '{n0,n1}', 4", "PC003"),
    ],
)
def test_invalid_front_is_refused(
    conn: psycopg.Connection,
    nodes: list[str],
    prepare: Callable[[psycopg.Connection, list[str]], None] | None,
    call: str,
    sqlstate: str,
) -> None:
    for number, dsn in enumerate(nodes):
        make_shards(dsn, (number, number + 2))
        add_node(conn, f"n{number}", dsn)
    if prepare is not None:
        prepare(conn, nodes)
    with raises_state(sqlstate):
        conn.execute(f"select pgcombine.create_front({call})".encode())
    assert one(conn, "select count(*) from pgcombine.front") == 0


def test_shard_with_keys_of_other_shards_is_refused(front: psycopg.Connection, nodes: list[str]) -> None:
    """Four queues hold the keys of a front with four shards, but now there are eight queues."""
    add(front, {f"w{i}": 1 for i in range(40)})
    combine_nodes(nodes[:1])
    front.execute("select pgcombine.drop_front('wc')")
    make_shards(nodes[0], range(4, 8))
    with raises_state("PC003"):
        front.execute("select pgcombine.create_front('wc', '{n0,n1}')")


@pytest.mark.parametrize("key", ["mood mood", "kind regclass", 'word text collate "loose"'])
def test_key_without_a_stable_hash_is_refused(conn: psycopg.Connection, nodes: list[str], key: str) -> None:
    for dsn in [*nodes, ""]:
        with connected(dsn) if dsn else nullcontext(conn) as there:
            there.execute("create type mood as enum ('glad', 'sad')")
            there.execute("create collation loose (provider = icu, locale = 'und', deterministic = false)")
    with raises_state("PC003"):
        make_front(conn, nodes, key=[key])


def test_name_of_a_front_is_taken(front: psycopg.Connection) -> None:
    with raises_state("PC002"):
        make_queue(front)
    with raises_state("PC002"):
        front.execute("select pgcombine.create_front('wc', '{n0,n1}')")


def test_drop_front_keeps_the_queues_of_its_shards(front: psycopg.Connection, nodes: list[str]) -> None:
    add(front, {"a": 1, "b": 2})
    front.execute("select pgcombine.drop_front('wc')")
    left = (
        "select relname from pg_class where relname ~ '^wc_' "
        "union all select proname from pg_proc where proname ~ '^wc_' "
        "union all select queue from pgcombine.front_shard"
    )
    assert front.execute(left).fetchall() == []
    front.execute("select pgcombine.create_front('wc', '{n0,n1}')")
    assert current(front) == {"a": 1, "b": 2}


def test_check_front_tells_what_is_wrong(front: psycopg.Connection, nodes: list[str]) -> None:
    check = "select node, problem from pgcombine.check_front('wc')"
    assert front.execute(check).fetchall() == []
    missing(front, nodes)
    make_shards(nodes[1], [0])
    with connected(nodes[1]) as conn:
        conn.execute("update pgcombine.queue set delete_when = 'n < 0' where queue = 'wc_03'")
        conn.execute("update pgcombine.schema_version set digest = 'older'")
    front.execute("alter server n0 options (set dbname 'nothing')")
    (down, *others) = front.execute(check).fetchall()
    assert down[0] == "n0"
    assert 'database "nothing" does not exist' in down[1]
    assert [(node, problem.partition(": ")[0]) for node, problem in others] == [
        ("n1", "another version of pgcombine"),
        ("n1", 'queue "wc_00" belongs to node n0'),
        ("n1", 'queue "wc_03" has other settings than the front'),
        ("n1", 'queue "wc_01" is missing'),
    ]


def test_right_on_a_node_decides_what_a_role_can_do(front: psycopg.Connection, nodes: list[str]) -> None:
    role = f"app_{front.info.dbname}"
    front.execute(f"create role {role} login password 'not-secret'".encode())
    try:
        for node in ("n0", "n1"):
            add_mapping(front, node, role, role, "not-secret")
        front.execute(f"grant insert on pgcombine.wc_updates, pgcombine_internal.wc_token to {role}".encode())
        front.execute(f"set role {role}".encode())
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            add(front, {"a": 1})
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            front.execute(CURRENT)
        for dsn in nodes:
            with connected(dsn) as conn:
                conn.execute(
                    "select pgcombine.grant_right('enqueue', %s, queue) from pgcombine.queue order by queue", (role,)
                )
        add(front, {"a": 1})
        assert one(front, ONCE, "t", Jsonb([{"word": "a", "n": 1}, {"word": "b"}])) is True
        assert one(front, ONCE, "t", Jsonb([{"word": "a", "n": 1}, {"word": "b"}])) is False
        front.execute("reset role")
        assert current(front) == {"a": 2}
    finally:
        front.execute("reset role")
        front.execute("drop extension postgres_fdw cascade")
        for dsn in nodes:
            with connected(dsn) as conn:
                conn.execute(f"drop owned by {role}".encode())
        front.execute(f"drop owned by {role}".encode())
        front.execute(f"drop role {role}".encode())


def test_upgrade_keeps_a_front(front: psycopg.Connection, dsn: str) -> None:
    front.execute("update pgcombine.schema_version set digest = 'older'")
    front.execute("drop function pgcombine_internal.wc_shard_number(text)")
    schema.upgrade(dsn)
    assert one(front, "select pgcombine.wc_enqueue(array['a'])") == 1
    assert one(front, ONCE, "t", Jsonb({"word": "a", "n": 2})) is True
    assert current(front) == {"a": 2}
