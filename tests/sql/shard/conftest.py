"""A front's database and two nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import psycopg
import pytest
from support.fronts import make_front
from support.servers import Server


@pytest.fixture
def nodes(server: Server) -> Iterator[list[str]]:
    """The URIs of two databases with pgcombine's schema."""
    with ExitStack() as stack:
        yield [stack.enter_context(server.migrated()) for _ in range(2)]


@pytest.fixture
def front(conn: psycopg.Connection, nodes: list[str]) -> psycopg.Connection:
    """An autocommit connection to a database with the front wc, which has two shards on each of two nodes."""
    make_front(conn, nodes)
    return conn
