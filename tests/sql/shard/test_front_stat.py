"""The view front_stat asks each node for the statistics of its shards, and still has rows if a node doesn't answer."""

from __future__ import annotations

from collections import Counter

import psycopg
from support.fronts import add_mapping, connected
from support.queues import add, combine_all, one
from support.servers import with_contrib

pytestmark = with_contrib

STAT = "select shard, node, pending, last_pass_at is not null, problem from pgcombine.front_stat order by shard"


def test_figures_are_those_of_the_nodes(front: psycopg.Connection, nodes: list[str]) -> None:
    words = [f"w{i}" for i in range(40)]
    add(front, dict.fromkeys(words, 1))
    counts = Counter(one(front, "select pgcombine.shard_of('wc', %s)", word) for word in words)
    assert front.execute(STAT).fetchall() == [
        (shard, f"n{shard % 2}", counts[shard], False, None) for shard in range(4)
    ]
    with connected(nodes[1]) as conn:
        combine_all(conn, "wc_03")
        conn.execute("set pgcombine.fresh = on")
        conn.execute("select from pgcombine.queue_stat").fetchall()  # makes a new estimate
    assert front.execute(STAT).fetchall()[3] == (3, "n1", 0, True, None)


def test_node_that_is_down_has_a_problem(front: psycopg.Connection, nodes: list[str]) -> None:
    front.execute("alter server n0 options (set dbname 'nothing')")
    with connected(nodes[1]) as conn:
        conn.execute("select pgcombine.drop_queue('wc_03')")
    first, second, third, fourth = front.execute(STAT).fetchall()
    for shard in (first, third):
        assert shard[1:4] == ("n0", None, False)
        assert 'database "nothing" does not exist' in shard[4]
    assert second == (1, "n1", 0, False, None)
    assert fourth == (3, "n1", None, False, 'the node shows no queue "wc_03"')


def test_role_sees_what_its_user_mapping_may_see(front: psycopg.Connection, nodes: list[str]) -> None:
    role = f"eye_{front.info.dbname}"
    front.execute(f"create role {role} login password 'not-secret'".encode())
    try:
        add_mapping(front, "n0", role, role, "not-secret")
        with connected(nodes[0]) as conn:
            conn.execute("select pgcombine.grant_right('monitor', %s)", (role,))
        front.execute(f"set role {role}".encode())
        problems = [row[4] for row in front.execute(STAT).fetchall()]
        assert problems[0] is problems[2] is None
        assert "user mapping not found" in problems[1]
    finally:
        front.execute("reset role")
        front.execute(f"drop owned by {role}".encode())
        with connected(nodes[0]) as conn:
            conn.execute(f"drop owned by {role}".encode())
        front.execute(f"drop role {role}".encode())


def test_dropped_front_leaves_nothing(front: psycopg.Connection) -> None:
    front.execute("select pgcombine.drop_front('wc')")
    assert front.execute("select relname from pg_class where relkind = 'f'").fetchall() == []
    assert front.execute(STAT).fetchall() == []
