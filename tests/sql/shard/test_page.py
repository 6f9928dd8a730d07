"""The statements of the page *Several shards*, ``shards.md``, each on the database that its fence names."""

from __future__ import annotations

import re
import shlex

import psycopg
from support import run_cli
from support.fronts import connected
from support.queues import one
from support.readme import ROOT, commands, fences, statements
from support.servers import with_contrib

PAGE = ROOT / "pgcombine" / "docs" / "shards.md"
ADDRESS = re.compile(r"host '(n\d)\.example', dbname 'app'")


def shown(row: tuple[object, ...]) -> str:
    """A row as the page shows it."""
    return " | ".join(str(part)[0].lower() if isinstance(part, bool) else str(part) for part in row)


@with_contrib
def test_statements_of_the_page_run(conn: psycopg.Connection, nodes: list[str], dsn: str) -> None:
    databases = {"on the front": conn} | {f"on node n{number}": connected(node) for number, node in enumerate(nodes)}

    role = f"web_{conn.info.dbname}"  # a name for this database, since a server's databases share its roles
    account = f"user '{conn.info.user}', password '{conn.info.password}'"

    def address(found: re.Match[str]) -> str:
        node = databases[f"on node {found[1]}"]
        host, port = node.execute("select host(inet_server_addr()), inet_server_port()").fetchone() or ()
        return f"host '{host}', port '{port}', dbname '{node.info.dbname}'"

    for block in fences(PAGE, "sql"):
        place, _, text = block.partition("\n")
        database = databases[place.removeprefix("-- ")]
        text = ADDRESS.sub(address, text)
        names = {"user 'app', password 'secret'": account, "role web": f"role {role}", "to web": f"to {role}"}
        for written, used in names.items():
            text = text.replace(written, used)
        for statement, expected in statements(text):
            cursor = database.execute(statement.encode())
            found = [shown(row) for row in cursor.fetchall()] if cursor.description else []
            assert expected is None or (found or ["(0 rows)"]) == [row.strip() for row in expected], statement
    (command,) = commands(PAGE)
    moved = run_cli(*shlex.split(command)[1:], "--dsn", dsn)
    assert moved.stdout == "moved: clicks\n", moved.stderr
    assert one(conn, "select node from pgcombine.front_shard where shard = 3") == "n0"
    conn.execute(f"drop owned by {role}; drop role {role}".encode())
    for database in databases.values():
        database.close()
