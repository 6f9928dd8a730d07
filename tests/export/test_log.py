"""The recipes for readers of the server's write-ahead log, on the page about exports.

The reader of a replication slot gets each committed change, and nothing of a pass that was rolled back.
"""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from support.queues import add, combine, combine_all, lose, make_queue
from support.readme import PAGES, fences, statements
from support.servers import Server, names, start

(PAGE,) = (page for page in PAGES if page.name == "export.md")
READ = (
    "select data from pg_logical_slot_get_binary_changes('s', null, null, "
    "'proto_version', '1', 'publication_names', 'p', 'messages', 'true')"
)


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_reader_of_the_log_gets_committed_changes(tmp_path: Path, name: str) -> None:
    if name == "given":
        pytest.skip("a server with wal_level = logical is needed")
    recipes = [
        statement
        for block in fences(PAGE, "sql")
        for statement, _ in statements(block)
        if "outbox (" in statement or "add_observer" in statement
    ]
    assert len(recipes) == 3
    with (
        start(name, tmp_path, wal_level="logical") as dsn,
        Server(name, dsn).migrated() as there,
        psycopg.connect(there, autocommit=True) as conn,
    ):
        make_queue(conn)
        for statement in recipes:
            conn.execute(statement.encode())
        conn.execute("create publication p for table outbox")
        conn.execute("select pg_create_logical_replication_slot('s', 'pgoutput')")
        add(conn, {"gone": 1})
        with conn.transaction(force_rollback=True):
            combine_all(conn)
        lose(conn)
        for number in (1, 2):
            combine(conn, {"fluo": number})
        conn.execute("delete from outbox")
        rows = [data for (data,) in conn.execute(READ)]
    news = [b'"new": 1', b'"new": 3']
    assert [[new in row for new in news] for row in rows if row[:1] == b"M"] == [[True, False], [False, True]]
    assert [[new in row for new in news] for row in rows if row[:1] == b"I"] == [[True, False], [False, True]]
    assert not any(b"gone" in row for row in rows)
