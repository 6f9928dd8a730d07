"""``truncate_queue`` leaves a queue as it was when it was made. The log refuses any other removal of updates."""

from __future__ import annotations

import psycopg
import pytest
from support.queues import add, combine_all, hold, one, values
from support.states import raises_state

LEFT = """
select (select count(*) from pgcombine.wc_updates), (select count(*) from pgcombine.wc_values),
       (select count(*) from pgcombine.wc_quarantine), (select count(*) from pgcombine.wc_quarantine_keys),
       (select count(*) from pgcombine.quarantined_key), (select count(*) from pgcombine.token)
"""


@pytest.mark.wc
def test_queue_is_empty_and_goes_on(conn: psycopg.Connection) -> None:
    add(conn, {"old": 1, "bad": 1})
    hold(conn, word="bad")
    combine_all(conn)
    add(conn, {"old": 2})
    conn.execute("""select pgcombine.enqueue_once('wc', 'token', '[{"word": "old", "n": 1}]')""")
    conn.execute("select pgcombine.truncate_queue('wc')")
    assert conn.execute(LEFT).fetchone() == (0, 0, 0, 0, 0, 0)
    assert one(conn, "select backlog from pgcombine.status") == 0
    add(conn, {"old": 5, "bad": 1})
    combine_all(conn)
    assert values(conn) == {"old": 5, "bad": 1}
    assert conn.execute("select * from pgcombine.verify('wc')").fetchall() == []


@pytest.mark.wc
@pytest.mark.parametrize(
    "use",
    [
        "select pgcombine.create_export('out', 'wc', 'python')",
        "select pgcombine.create_feed('changes', 'wc')",
        "select pgcombine.create_tier('letters', source => 'wc', key => array['left(word, 1) as letter'])",
    ],
)
def test_queue_that_another_component_uses_stays(conn: psycopg.Connection, use: str) -> None:
    add(conn, {"a": 1})
    conn.execute(use.encode())
    with raises_state("PC005"):
        conn.execute("select pgcombine.truncate_queue('wc')")
    assert one(conn, "select count(*) from pgcombine.wc_pending") == 1


@pytest.mark.wc
@pytest.mark.parametrize("statement", ["delete from {}", "update {} set n = 2", "truncate {}", "truncate only {}"])
def test_updates_are_not_changed(conn: psycopg.Connection, statement: str) -> None:
    """TRUNCATE ONLY of a partitioned table fails by itself."""
    add(conn, {"a": 1})
    with raises_state("42809" if "only" in statement else "PC014"):
        conn.execute(statement.format("pgcombine.wc_updates").encode())
    combine_all(conn)
    assert values(conn) == {"a": 1}
