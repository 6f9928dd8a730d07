"""Checks of the server: its version, its settings, and its resources, such as connections and disk space."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg

from pgcombine.database.connect import one, require_writable
from pgcombine.doctor.findings import Context, Finding, error, info, megabytes, ok, warning
from pgcombine.errors import ServerNotReadyError

OLDEST_VERSION = 15


def version(context: Context) -> Iterator[Finding]:
    """The server's major version."""
    number = context.connection.info.server_version
    if number < OLDEST_VERSION * 10_000:
        yield error(
            f"PostgreSQL {number // 10_000}", f"use PostgreSQL {OLDEST_VERSION} or later", value=number // 10_000
        )
    else:
        yield ok(f"PostgreSQL {context.settings['server_version']}", value=number // 10_000)


def writable(context: Context) -> Iterator[Finding]:
    """Whether the server takes writes."""
    try:
        require_writable(context.connection)
        yield ok("the server takes writes")
    except ServerNotReadyError as failure:
        found, _, advice = str(failure).rstrip(")").partition(" (")
        yield error(found, advice)


def connections(context: Context) -> Iterator[Finding]:
    """Whether the limits of the server, the database and the role leave enough connections."""
    (row,) = context.rows("doctor_connections")
    found = f"{row['used']} of {row['usable']} connections are in use, {row['workers']} of them by workers"
    if row["used"] > 0.8 * row["usable"]:
        yield warning(
            f"{found} ({row['limited_by']})",
            "raise the limit, close idle sessions, or put a pooler before the application; "
            "a worker takes one connection for each loop (--concurrency), one for maintenance, one more if it has "
            "several loops, and one more with --metrics-port",
            value=row["used"],
        )
    else:
        yield ok(found, value=row["used"])


def autovacuum(context: Context) -> Iterator[Finding]:
    """Whether autovacuum is on, for the server and for the tables of pgcombine."""
    off = [name for name in ("autovacuum", "track_counts") if context.settings[name] != "on"]
    for name in off:
        yield error(
            f"{name} is off: dead rows stay, and passes become slower",
            f"set {name} = on in the server's configuration, and reload it",
        )
    tables = [row["table"] for row in context.rows("doctor_autovacuum")]
    if tables:
        yield warning(
            f"autovacuum is switched off for {', '.join(tables[:3])}{' and others' if len(tables) > 3 else ''}",
            f"alter table {tables[0]} reset (autovacuum_enabled)",
            value=len(tables),
        )
    if not off and not tables:
        yield ok(f"on, {context.settings['autovacuum_max_workers']} workers")


def statistics(context: Context) -> Iterator[Finding]:
    """Whether the server shows what sessions do."""
    if context.settings["track_activities"] != "on":
        yield warning(
            "track_activities is off: old snapshots aren't dated, and waiting workers aren't seen",
            "set track_activities = on, for the server, the database and the role",
        )
    else:
        yield ok("track_activities is on")


def timeouts(context: Context) -> Iterator[Finding]:
    """The timeouts of this role's sessions."""
    found = False
    for name, least, what in (
        ("statement_timeout", 10.0, "statements, passes too, are cancelled"),
        ("transaction_timeout", 10.0, "sessions are ended in a transaction"),
        ("idle_session_timeout", float("inf"), "sessions of sleeping workers are ended"),
    ):
        seconds = int(context.settings.get(name, "0")) / 1000
        if 0 < seconds < least:
            found = True
            yield warning(
                f"{name} is {seconds:g} s: {what} after that",
                f"alter role {context.role} set {name} = 0, for the roles of workers",
                value=seconds,
            )
    seconds = int(context.settings["idle_in_transaction_session_timeout"]) / 1000
    if seconds == 0:
        found = True
        yield info(
            "idle_in_transaction_session_timeout is 0: a forgotten transaction holds its snapshot without limit",
            "set idle_in_transaction_session_timeout to some minutes, for applications at least",
            value=0,
        )
    if not found:
        yield ok(f"idle transactions end after {seconds:g} s", value=seconds)


def durability(context: Context) -> Iterator[Finding]:
    """Whether commits survive a crash."""
    off = [name for name in ("fsync", "full_page_writes") if context.settings[name] != "on"]
    if off:
        yield warning(
            f"{' and '.join(off)} is off: a crash of the machine can destroy the database",
            f"set {' and '.join(off)} to on, unless the data may be lost",
        )
    elif context.settings["synchronous_commit"] == "off":
        yield info(
            "synchronous_commit is off: the last commits before a crash may be lost",
            "set synchronous_commit to on where an enqueue that returned must survive a crash",
        )
    else:
        yield ok("commits are flushed to disk")


def wal(context: Context) -> Iterator[Finding]:
    """Whether ``max_wal_size`` is large enough."""
    size = int(context.settings["max_wal_size"])
    if size < 1024:
        yield info(
            f"max_wal_size is {size} MB: many updates force checkpoints, after which the WAL gets whole pages",
            "set max_wal_size to 1GB or more",
            value=size,
        )
    else:
        yield ok(f"max_wal_size is {size} MB", value=size)


def jit(context: Context) -> Iterator[Finding]:
    """Whether the server compiles queries (JIT)."""
    if context.settings["jit"] == "on" and one(context.connection, "select pg_jit_available()")[0]:
        yield info(
            "jit is on: compiling a pass's statement can take longer than the pass",
            "set jit = off for the roles of workers (alter role … set jit = off), and compare",
        )
    else:
        yield ok("queries aren't compiled")


def clock(context: Context) -> Iterator[Finding]:
    """The difference between the server's clock and this machine's."""
    before = context.clock()
    (server,) = one(context.connection, "select date_part('epoch', clock_timestamp())")
    after = context.clock()
    apart = float(server) - (before + after) / 2
    if abs(apart) > context.limits.clock + (after - before) / 2:
        yield warning(
            f"the server's clock is {abs(apart):.1f} s {'ahead of' if apart > 0 else 'behind'} this machine's",
            "synchronize both by NTP: ages, back-off and the order of several servers' writes depend on clocks",
            value=round(apart, 3),
        )
    else:
        yield ok(
            f"the clocks are {abs(apart):.3f} s apart, measured to within {(after - before) / 2:.3f} s",
            value=round(apart, 3),
        )


def disk(context: Context, usage: Callable[[Path], Any] = shutil.disk_usage) -> Iterator[Finding]:
    """The size of the database, and the free space on the server's disk if this machine can see it."""
    try:
        (size,) = one(context.connection, "select pg_database_size(current_database())")
        said = f"the database has {megabytes(size)}"
    except psycopg.errors.InsufficientPrivilege:
        size, said = None, "the role may not see the database's size"
    # a server that root started with pgcombine.embedded has the data_directory /proc/self/cwd, as its processes see it
    session = f"/proc/{context.connection.info.backend_pid}/"
    directory = (context.settings.get("data_directory") or "").replace("/proc/self/", session)
    if not directory or not _served_from(Path(directory), context):
        yield info(
            f"{said}; the free space on the server's disk can't be seen from here",
            "watch the disk on the server: while it is full, enqueues and passes fail",
            value=size,
        )
        return
    found = usage(Path(directory))
    share = 1 - found.free / found.total
    said += f"; the server's disk is {share:.0%} full, {megabytes(found.free)} are free"
    if share > context.limits.full:
        yield warning(said, "make room, or move the data: enqueues fail while the disk is full", value=found.free)
    else:
        yield ok(said, value=found.free)


def _served_from(directory: Path, context: Context) -> bool:
    """Whether the directory on this machine is the server's: another server may have one at the same path."""
    (started,) = one(context.connection, "select date_part('epoch', pg_postmaster_start_time())")
    try:
        lines = (directory / "postmaster.pid").read_text().splitlines()
        return abs(int(lines[2]) - float(started)) < 5
    except (OSError, ValueError, IndexError):
        return False
