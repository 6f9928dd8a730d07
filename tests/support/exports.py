"""Exports of the queue ``wc`` for the tests, and the destination's table in another database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql

from pgcombine.export.entries import TIMEOUT_SECONDS
from pgcombine.export.worker import ExportWorker
from support.queues import make_queue, one


def make_export(conn: psycopg.Connection, to: str | None = None, export: str = "search", **options: object) -> None:
    """Call ``pgcombine.create_export``, by default for the queue ``wc``.

    ``to`` is the URI of a destination in PostgreSQL. Its password isn't part of the export's target.
    """
    arguments: dict[str, object] = {"export": export, "queue": "wc"}
    if to is not None:
        parts = psycopg.conninfo.conninfo_to_dict(to)
        parts.pop("password", None)
        arguments |= {"exporter": "postgres", "target": psycopg.conninfo.make_conninfo(**parts)}
    arguments |= options
    call = sql.SQL("select pgcombine.create_export({})").format(
        sql.SQL(", ").join(sql.SQL("{} => %s").format(sql.Identifier(name)) for name in arguments)
    )
    conn.execute(call, list(arguments.values()))


def make_exported(conn: psycopg.Connection, to: str | None = None, buckets: int = 4, **options: object) -> None:
    """Make the queue ``wc`` and its export."""
    make_queue(conn, buckets=buckets)
    make_export(conn, to, **options)


def impatient(conn: psycopg.Connection, **options: object) -> None:
    """Let the destination count as down after one failure, and let the next attempt be due at once."""
    given = {"down_after": 1, "longest_backoff": "1 us"} | options
    call = sql.SQL("select pgcombine_internal.add_destination('export', 'search', {})").format(
        sql.SQL(", ").join(sql.SQL("{} => {}").format(sql.Identifier(name), value) for name, value in given.items())
    )
    conn.execute(call)


def run_at(target: str, statement: str) -> None:
    with psycopg.connect(target, autocommit=True) as there:
        there.execute(statement.encode())


def waiting(conn: psycopg.Connection, export: str = "search") -> int:
    return one(conn, "select entries from pgcombine_internal.export_backlog(%s)", export)


def quarantined(conn: psycopg.Connection) -> int:
    return one(conn, "select count(*) from pgcombine.export_entry where error is not null")


def state(conn: psycopg.Connection, export: str = "search") -> str:
    return str(one(conn, "select state from pgcombine.destination where name = %s", export))


def worker_to(
    dsn: str, target: str, export: str = "search", *, timeout: float = TIMEOUT_SECONDS, **options: Any
) -> ExportWorker:
    """A worker that delivers to ``target``, which may hold a password. A batch may take ``timeout`` seconds."""
    return ExportWorker(dsn, export, target=target, timeout=timeout, **options)


def exported(target: str, table: str = "search") -> dict[Any, Any]:
    """The rows of the destination's table that aren't marked as deleted: word → n."""
    with psycopg.connect(target) as conn:
        rows = conn.execute(
            sql.SQL("select word, n from {} where not pgcombine_deleted").format(sql.Identifier(table))
        ).fetchall()
    return dict(rows)


@contextmanager
def watched(target: str, table: str = "search") -> Iterator[None]:
    """Record inserts and updates in the destination's table during the block. Creates the table if it is missing.

    The end of the block raises AssertionError if an update of a row didn't increase the row's sequence.
    """
    name = sql.Identifier(table)
    with psycopg.connect(target, autocommit=True) as conn:
        conn.execute(
            sql.SQL(
                "create table if not exists {} (word text primary key, n bigint, pgcombine_seq bigint not null, "
                "pgcombine_deleted boolean not null)"
            ).format(name)
        )
        conn.execute("create table written (id bigserial, word text, seq bigint)")
        conn.execute(
            "create function note() returns trigger language plpgsql as "
            "$$ begin insert into written (word, seq) values (new.word, new.pgcombine_seq); return null; end $$"
        )
        conn.execute(
            sql.SQL("create trigger note after insert or update on {} for each row execute function note()").format(
                name
            )
        )
        yield
        back = conn.execute(
            "select word, seq from (select word, seq, lag(seq) over (partition by word order by id) as before "
            "from written) w where before >= seq"
        ).fetchall()
        assert back == []
