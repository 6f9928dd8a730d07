"""A version as a contender of the comparison with peers: its queue, its worker, and how its log was reclaimed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from uuid import uuid4

from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgcombine.bench.scratch import QUEUE, UPDATES, running
from pgcombine.database.connect import Connection, connect, one
from pgcombine.errors import PgCombineError

from ..checkout import Environment
from ..peers.contender import Consumer
from ..peers.queues import Queue
from ..peers.turn import Base, Turn, filled

_LEAVES = f"pg_partition_tree('{UPDATES}') t join pg_class c on c.oid = t.relid where t.isleaf"


class Version(Queue):
    """A version with a queue of ``buckets`` buckets and one worker.

    ``max_delay`` is the value of ``--max-delay`` in seconds; a version without this option ignores it.
    """

    tables: tuple[str, ...] = (UPDATES, f"pgcombine.{QUEUE}_values")

    def __init__(self, environment: Environment, buckets: int, max_delay: float | None) -> None:
        super().__init__(buckets)
        self.name, self.summary = environment.name, environment.summary
        self.buckets = buckets
        self._environment = environment
        self._options = ["--max-delay", str(max_delay)] if max_delay is not None and may_rest(environment) else []

    def make(self, connection: Connection) -> None:
        create(connection, QUEUE, self.buckets)

    @contextmanager
    def consumer(self, dsn: str) -> Iterator[Consumer]:
        command = self._environment.command("worker", QUEUE, "--dsn", dsn, *self._options)
        with running(dsn, command, "pgcombine worker", cwd=self._environment.tree.parent) as process:
            yield process

    def settled(self, connection: Connection) -> bool:
        return not one(connection, "select pgcombine.backlog(%s)", QUEUE)[0]

    def combine(self, connection: Connection) -> None:
        """Combine all pending updates without a worker."""
        while not self.settled(connection):
            for bucket in range(self.buckets):
                connection.execute("select from pgcombine.combine(%s, %s)", (QUEUE, bucket))


@cache
def may_rest(environment: Environment) -> bool:
    """Whether the version's worker has the option ``--max-delay``."""
    return "--max-delay" in environment.cli("worker", "--help")


def create(connection: Connection, queue: str, buckets: int) -> None:
    """Create a queue with this version's ``create_queue``, without ``delete_when`` if the function lacks it.

    Raises PgCombineError if the function lacks one of the other parameters.
    """
    given = {
        "queue": queue,
        "key": ["word text"],
        "value": ["n bigint sum"],
        "buckets": buckets,
        "delete_when": "n = 0",
    }
    (known,) = one(connection, "select proargnames from pg_proc where oid = 'pgcombine.create_queue'::regproc")
    if missing := given.keys() - {*known, "delete_when"}:
        raise PgCombineError(f"this version's create_queue has no parameter {', '.join(sorted(missing))}")
    named = ", ".join(f"{name} => %({name})s" for name in given if name in known)
    connection.execute(f"select pgcombine.create_queue({named})".encode(), given)


def reclaimed(connection: Connection) -> str:
    """Return a text on how the queue's log has been reclaimed so far. The worker must have ended."""
    connection.execute("select pg_stat_force_next_flush()")  # count this session's deleted rows, too
    tables, truncated, deleted, ring, size, may = one(
        connection,
        # a truncation gives a table a new file; before, the file's number is the table's oid
        "select count(*), count(*) filter (where pg_relation_filenode(c.oid) <> c.oid), "  # noqa: S608
        "coalesce(sum(pg_stat_get_tuples_deleted(c.oid)), 0)::bigint, bool_or(c.relname ~ '_s[0-9]+$'), "
        f"sum(pg_table_size(c.oid)) / 1e6, pg_has_role('pg_read_all_stats', 'usage') from {_LEAVES}",
    )
    ways = [f"truncating ({truncated} of {tables} tables)"] if truncated else []
    if deleted:
        ways.append(f"{'deleting' if ring else 'deleted by passes'} ({deleted:,} rows)")
    right = f"; the owner {'has' if may else 'lacks'} pg_read_all_stats" if ring else ""
    return f"{' and '.join(ways) or 'nothing yet'}{right}; {size:.1f} MB left"


def log_size(connection: Connection) -> float:
    return float(one(connection, f"select sum(pg_table_size(c.oid)) / 1e6 from {_LEAVES}")[0])  # noqa: S608


@contextmanager
def owner(admin: str, *, reads_statistics: bool) -> Iterator[str]:
    """Make an ordinary role that owns the queues of a run, and drop it at the end. Yields its URI.

    ``admin`` is a superuser's URI. With ``reads_statistics`` the role is a member of ``pg_read_all_stats``.
    """
    name, password = f"versions_{uuid4().hex[:12]}", uuid4().hex
    groups = "pg_checkpoint, pg_read_all_stats" if reads_statistics else "pg_checkpoint"
    with closing(connect(admin)) as connection:
        connection.execute(f"create role {name} login password '{password}' in role {groups}".encode())
        try:
            yield make_conninfo(admin, user=name, password=password)
        finally:
            connection.execute(f"drop role {name}".encode())


def stranger(turn: Turn, base: Base) -> Connection:
    """Open a superuser's session, whose snapshots the worker's role sees only if it may read all statistics."""
    return connect(make_conninfo(base.admin, dbname=turn.connection.info.dbname), name="versions stranger")


@contextmanager
def base(admin: str, own: str, environment: Environment, words: list[str]) -> Iterator[Base]:
    """Make the database that a version's turns copy, with the version's own ``db upgrade``, and drop it at the end.

    The schemas in the database belong to the role in the URI ``own``.
    """
    name = f"versions_{uuid4().hex[:12]}"
    role = sql.Identifier(str(conninfo_to_dict(own)["user"]))
    with closing(connect(make_conninfo(admin, dbname="template1"))) as server:
        make = f"create database {name} template template0 encoding 'UTF8' owner {role.as_string()}"
        server.execute(make.encode())
        try:
            environment.cli("db", "upgrade", "--dsn", make_conninfo(own, dbname=name))
            yield filled(make_conninfo(own, dbname=name), words, admin)
        finally:
            server.execute(f"drop database {name} with (force)".encode())
