"""Errors that users' mistakes cause have at most five lines of CONTEXT, which psql shows below the hint."""

from __future__ import annotations

import psycopg
import pytest
from support.queues import add, make_queue
from support.servers import embedded_only

LINES = 5
CREATE = "select pgcombine.create_queue('w', {}, {})"
TEXT, SUM = "'{word text}'", "'{n bigint sum}'"


@pytest.mark.wc
@embedded_only
@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (CREATE.format(TEXT, SUM).replace("'w'", "'wc'"), 'queue "wc" exists'),
        (CREATE.format(TEXT, SUM).replace("'w'", "'Wc'"), "invalid queue name 'Wc'"),
        (CREATE.format("'{}'", SUM), "at least one key column"),
        (CREATE.format("'{word}'", SUM), "column definition 'word' can't be read"),
        (CREATE.format("'{word txt}'", SUM), 'unknown type "txt"'),
        (CREATE.format("'{word point}'", SUM), "can't be of this type"),
        (CREATE.format(TEXT, "'{n bigint summ}'"), 'unknown combiner "summ"'),
        (CREATE.format(TEXT, "'{n text sum}'"), 'doesn\'t take type "text"'),
        (CREATE.format(TEXT, "'{n bigint last(at)}'"), 'needs a value column "at"'),
        (CREATE.format(TEXT, "'{word bigint sum}'"), "appears twice"),
        (CREATE.format(TEXT, SUM + ", delete_when => 'm = 0'"), 'column "m" does not exist'),
        (CREATE.format(TEXT, SUM + ", delete_when => 'word is null'"), 'names key column "word"'),
        (CREATE.format(TEXT, SUM + ", buckets => 0"), "invalid number of buckets: 0"),
        (CREATE.format(TEXT, SUM + ", buckets_per_partition => 3"), "buckets for each partition: 3"),
        (CREATE.format(TEXT, SUM + ", tablespaces => '{nowhere}'"), 'no tablespace "nowhere"'),
        (CREATE.format(TEXT, SUM + ", if_not_exists => true").replace("'w'", "'two'"), "with other columns"),
        (
            CREATE.format(TEXT, SUM + ", max_backlog => 9, if_not_exists => true").replace("'w'", "'wc'"),
            "other options",
        ),
        ("call pgcombine.drain('paused')", "is paused and has pending updates"),
        ("begin; call pgcombine.drain('wc')", "drain can't run in a transaction"),
        ("select pgcombine.rebucket('wc', 0)", "invalid number of buckets: 0"),
        ("select pgcombine.drop_queue('wc')", 'queue "wc" has 1 pending updates'),
        ("select pgcombine.drop_queue('wcc')", 'no queue "wcc"'),
        ("select pgcombine.combine('wc', 99)", "no bucket 99"),
        ("select pgcombine.combine('wcc')", 'no queue "wcc"'),
        ("select pgcombine.backlog('wcc')", 'no queue "wcc"'),
        ("select pgcombine.pause('wcc')", 'no queue "wcc"'),
        ("call pgcombine.wait('wc', '1 ms')", "still has pending updates"),
        ("select pgcombine.add_observer('wc', 'o')", "needs a name and, in SQL, a statement"),
        ("select pgcombine.add_observer('wc', 'o', language => 'perl')", "not in 'perl'"),
        ("select pgcombine.add_observer('wc', 'o', 'insert into nowhere select 1')", '"nowhere" does not exist'),
        ("select pgcombine.drop_observer('wc', 'o')", 'no observer "o"'),
        ("select pgcombine.grant_right('reed', current_user, 'wc')", "no right 'reed'"),
        ("select pgcombine.grant_right('read', current_user)", "needs the name of a queue"),
        ("select pgcombine.revoke_right('monitor', current_user, 'wc')", "concerns no single queue"),
        ("select pgcombine.create_export('e', 'wc', 'kafka')", "no exporter 'kafka'"),
        ("select pgcombine.enqueue('wc', '1')", "must be a JSON array of objects, not 1"),
        ("select pgcombine.enqueue('wc', '{\"wrod\": \"a\"}')", 'no column "wrod"'),
        ("insert into pgcombine.wc_updates values (repeat('x', 3000), 1)", "a key has at most 2600 bytes: shorten it"),
        ("insert into pgcombine.two_updates values (repeat('x', 3000), 1)", "a key has at most 2600 bytes: shorten it"),
        ("insert into pgcombine.wc_updates values ('a', 1, 7)", "must have the id of its own transaction"),
        ("insert into pgcombine.wc_values values ('a', 1)", "written by passes alone"),
    ],
)
def test_mistakes_show_few_lines_of_context(conn: psycopg.Connection, statement: str, message: str) -> None:
    make_queue(conn, "two", key=["word text", "code numeric"])
    make_queue(conn, "paused")
    add(conn, {"a": 1})
    add(conn, {"a": 1}, "paused")
    conn.execute("select pgcombine.pause('paused')")
    with pytest.raises(psycopg.Error, match=message) as caught:
        conn.execute(statement)
    assert caught.value.diag.message_hint or "shorten it" in message
    assert len((caught.value.diag.context or "").splitlines()) <= LINES, caught.value.diag.context
