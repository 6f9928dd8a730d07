"""All checks, in the order in which :func:`examine` runs them.

Each check runs in a transaction of its own, in which the time of a statement is limited. Errors of the database become
findings, too, for example if the role lacks a right, or if the database can't be reached.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace

import psycopg

from pgcombine.database.connect import connect
from pgcombine.doctor import database, machine, queues, server
from pgcombine.doctor.findings import Check, Context, Finding, Level, Limits, error, name_of
from pgcombine.errors import PgCombineError, first_line

SECONDS = 10  # the time limit of a check's statement

MACHINE: Sequence[Check] = (machine.program, machine.java, machine.jdbc_driver)
SERVER: Sequence[Check] = (
    *(server.version, server.writable, server.connections, server.statistics, server.timeouts, server.durability),
    *(server.wal, server.jit, server.clock, server.disk),
    *(database.extensions, database.collation, database.search_path, database.pooler, database.notifications),
    database.slots,
)
SCHEMA: Sequence[Check] = (database.schema,)
# these checks need a schema of this program's version
QUEUES: Sequence[Check] = (
    *(database.cluster_identity, database.role, database.rights, database.snapshots, server.autovacuum),
    *(queues.queues, queues.workers, queues.paused, queues.lag, queues.buckets, queues.locked, queues.failing),
    *(queues.quarantine, queues.backlog, queues.segments, queues.structure, queues.rollups, queues.fronts),
    *(queues.exports, queues.feeds),
    *(queues.servers, queues.loads),
)
CHECKS: Sequence[Check] = (*MACHINE, *SERVER, *SCHEMA, *QUEUES)


def examine(
    dsn: str, *, queues: Sequence[str] = (), rights: Sequence[str] = (), limits: Limits | None = None
) -> list[Finding]:
    """Return the findings of all checks.

    ``queues`` are the names of the queues to examine (empty: all that the role may see). ``rights`` are the rights that
    the role must have, such as ``work``. Without a schema of this program's version, the checks that need it are left
    out.
    """
    findings: list[Finding] = []
    try:
        limits = limits or Limits()
        with closing(connect(dsn, name="pgcombine doctor", timeout=0, limit=limits.answer)) as connection:
            context = Context(connection, dsn, queues, rights, limits)
            for check in (*MACHINE, *SERVER, *SCHEMA):
                findings += made(check, context)  # if the connection is lost, the findings of earlier checks stay
            if not (findings[-1].check == "schema" and findings[-1].level is Level.error):
                for check in QUEUES:
                    findings += made(check, context)
    except PgCombineError as failure:
        found, separator, advice = str(failure).rpartition(" (")
        finding = error(found, advice.removesuffix(")")) if separator else error(str(failure), "")
        findings.append(replace(finding, check="connection"))
    except psycopg.OperationalError as failure:
        findings.append(replace(error(f"lost: {first_line(failure)}", "look at the server's log"), check="connection"))
    return findings


def made(check: Check, context: Context) -> Iterator[Finding]:
    """Yield the findings of one check. If the database reports an error, yield one finding about the error instead.

    Raises psycopg.Error if the connection is closed.
    """
    try:
        with context.connection.transaction():
            context.connection.execute(f"set local statement_timeout = '{SECONDS}s'; set local lock_timeout = '1s'")
            context.connection.execute("set local pgcombine.fresh = on")
            found = [*check(context)]
    except psycopg.Error as failure:
        if context.connection.closed:
            raise
        denied = isinstance(failure, psycopg.errors.InsufficientPrivilege)
        advice = (
            "run the doctor as the schema's owner, or as a role with the right monitor"
            if denied
            else "the check failed; look at the server's log"
        )
        found = [Finding(Level.info if denied else Level.warning, f"not checked: {first_line(failure)}", advice)]
    for finding in found:
        yield replace(finding, check=name_of(check))
