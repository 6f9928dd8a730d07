"""Checks of the database, of the role, and of the connection."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

from psycopg import sql

from pgcombine import schema as versions
from pgcombine.database.connect import connect, one
from pgcombine.doctor.findings import Context, Finding, error, info, megabytes, ok, warning
from pgcombine.errors import PgCombineError, SchemaError
from pgcombine.worker.maintenance import old_snapshots, reclaiming

_ABOUT_NO_QUEUE = ("monitor", "work")  # rights that are granted without naming a queue


def schema(context: Context) -> Iterator[Finding]:
    """Whether the schema has this program's version."""
    try:
        revision = versions.check_connection(context.connection)
        yield ok(f"revision {revision}, which is this program's", value=revision)
    except SchemaError as failure:
        found, _, advice = str(failure).rpartition(": ")
        yield error(found, advice)


def extensions(context: Context) -> Iterator[Finding]:
    """Whether the database has the extension plpgsql, which pgcombine needs."""
    found = [f"{row['name']} {row['version']}" for row in context.rows("doctor_extensions")]
    if any(name.startswith("plpgsql ") for name in found):
        yield ok(f"pgcombine needs only plpgsql; installed: {', '.join(found)}", value=found)
    else:
        yield error("the extension plpgsql is missing", "create extension plpgsql, then pgcombine db upgrade")


def cluster_identity(context: Context) -> Iterator[Finding]:
    """Whether ``post_restore`` has run in a restored database."""
    if one(context.connection, "select pgcombine_internal.own_cluster()")[0]:
        yield ok("the log's transaction ids are this database's")
    else:
        yield error(
            "the database was restored from a dump and post_restore has not run: enqueues fail",
            "start a worker, or call select pgcombine.post_restore()",
        )


def role(context: Context) -> Iterator[Finding]:
    """Whether the role is a superuser, sees other sessions, and can make temporary tables."""
    who = f'role "{context.role}"'
    fine = True
    if context.attributes["superuser"]:
        fine = False
        yield info(
            f"{who} is a superuser: observers, and triggers on their tables, run with all rights in its workers",
            "let an ordinary role own the schema, and another one run workers",
        )
    if not context.attributes["sees"]:
        fine = False
        deletes = reclaiming(context.connection) == "deleting"
        yield info(
            f"{who} doesn't see other roles' sessions: its workers don't warn of old snapshots"
            f"{', and delete combined updates instead of truncating them' if deletes else ''}",
            f"grant pg_read_all_stats to {_name(context.role)}, for workers and monitoring",
        )
    if not context.attributes["temporary"] and (not context.rights or "work" in context.rights):
        fine = False
        yield warning(
            f"{who} can't make temporary tables, which the search for failing keys needs",
            f"grant temporary on database {_name(context.connection.info.dbname)} to {_name(context.role)}",
        )
    if fine:
        yield ok(f"{who} is ordinary, and sees others' sessions")


def rights(context: Context) -> Iterator[Finding]:
    """The role's rights, compared with the rights that it must have."""
    wanted, names = list(context.rights) or None, list(context.queues) or None
    found = context.rows("doctor_rights", wanted, names, names, wanted, wanted)
    who = f'role "{context.role}"'
    held: dict[str, list[str]] = {}
    lacking: dict[str, list[str]] = {}
    for row in found:
        right, subject = row["right"], row["subject"]
        if not row["lacking"]:
            held.setdefault(right, []).append(subject)
        elif context.rights or right != "handoff":
            lacking.setdefault(right, []).append(subject)
    for right, subjects in lacking.items():
        named = right in _ABOUT_NO_QUEUE
        where = "" if named else f" on {', '.join(subjects[:5])}{' and others' if len(subjects) > 5 else ''}"
        arguments = sql.SQL(", ").join(map(sql.Literal, [right, context.role, *([] if named else subjects[:5])]))
        call = sql.SQL("select pgcombine.grant_right({})").format(arguments)
        advice = f"as the schema's owner: {call.as_string(context.connection)}"
        if context.rights and (right not in held or context.queues):
            yield error(f"{who} lacks the right {right}{where}", advice, value=subjects)
        else:
            yield warning(f"{who} lacks all or a part of the right {right}{where}", advice, value=subjects)
    for right in context.rights:
        if right not in held and right not in lacking:
            yield info(f"there is no queue on which {who} could have the right {right}", "pgcombine queue create")
    if not held and not lacking and not context.rights:
        yield info(
            f"{who} has no right on any queue",
            "grant one (pgcombine docs rights), or connect as the role that the application uses",
        )
    if held:
        told = "; ".join(right if right in _ABOUT_NO_QUEUE else f"{right} {len(of)}" for right, of in held.items())
        yield ok(f"{who} has these rights, with the number of queues: {told}", value=held)


def search_path(context: Context) -> Iterator[Finding]:
    """Whether every role can create functions in a schema on the search path."""
    open_to_all = [row["schema"] for row in context.rows("doctor_search_path")]
    if open_to_all:
        yield warning(
            f"every role can create functions in the schema {', '.join(open_to_all)}, which is on the search path: "
            "such functions can be called instead of PostgreSQL's own",
            f"revoke create on schema {open_to_all[0]} from public",
            value=open_to_all,
        )
    else:
        yield ok("only chosen roles can create functions on the search path")


def pooler(context: Context) -> Iterator[Finding]:
    """Whether a pooler is between this program and the server."""
    if context.pooled:
        yield warning(
            "the connection goes through a pooler: workers can't LISTEN, so they poll, and each wait "
            "occupies one of the pooler's connections",
            "let workers connect to the server itself; enqueues and reads may go through the pooler",
        )
    else:
        yield ok("the connection goes to the server itself")


def notifications(context: Context) -> Iterator[Finding]:
    """The time that a notification takes from one session to another."""
    if context.pooled:
        yield info("not measured: the connection goes through a pooler", "give the server's own address with --dsn")
        return
    channel = f"pgcombine.doctor.{context.connection.info.backend_pid}"
    with ExitStack() as stack:  # two more connections: the check's transaction would notify and hear only at its end
        try:
            listener, sender = (
                stack.enter_context(
                    connect(context.dsn, name="pgcombine doctor", timeout=0, limit=context.limits.answer)
                )
                for _ in range(2)
            )
        except PgCombineError as failure:
            yield warning(f"not measured: {failure}", "the check needs two more connections, and so does a worker")
            return
        listener.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
        began = time.monotonic()
        sender.execute("select pg_notify(%s, '')", (channel,))
        came = any(True for _ in listener.notifies(timeout=context.limits.wait, stop_after=1))
        seconds = time.monotonic() - began
    if not came or seconds > context.limits.round_trip:
        yield warning(
            f"a notification took {seconds:.3f} s" if came else f"no notification came in {seconds:.0f} s",
            "look for a session that listens and is idle in a transaction, and check the server's load; "
            "workers poll in the meantime",
            value=round(seconds, 4),
        )
    else:
        yield ok(f"a notification takes {seconds * 1000:.1f} ms", value=round(seconds, 4))


def snapshots(context: Context) -> Iterator[Finding]:
    """What keeps old rows, for example a session with an old snapshot (see :func:`old_snapshots`)."""
    found = old_snapshots(context.connection, context.limits.snapshot)
    for one_of in found:
        pid = one_of["pid"]
        age = "" if one_of["age_seconds"] is None else f" for {one_of['age_seconds']:.0f} s"
        yield warning(
            f"old rows are held{age} by {one_of['holder']} {one_of['name']}{f' (pid {pid})' if pid else ''}, "
            f"{one_of['detail']}: combined updates stay, and passes become slower",
            f"end that transaction: select pg_terminate_backend({pid})"
            if pid
            else "end what holds the rows; the finding names it",
            value=one_of["age_seconds"],
        )
    if not found:
        yield ok(f"no session holds a snapshot older than {context.limits.snapshot:g} s")


def slots(context: Context) -> Iterator[Finding]:
    """Replication slots, and how much write-ahead log they keep."""
    found = context.rows("doctor_slots")
    for slot in found:
        said = f"slot {slot['slot']} keeps {megabytes(slot['bytes'])} of write-ahead log"
        if slot["bytes"] > context.limits.retained_bytes or slot["lost"]:
            yield warning(
                f"{said}{'' if slot['active'] else ', and nothing reads it'}",
                f"start the slot's reader, or select pg_drop_replication_slot('{slot['slot']}'); "
                "max_slot_wal_keep_size bounds what slots keep",
                value=slot["bytes"],
            )
        else:
            yield ok(said, value=slot["bytes"])


def collation(context: Context) -> Iterator[Finding]:
    """Whether the database's collation still has the version with which the indexes were made."""
    (row,) = context.rows("doctor_collation")
    now = row["now"]
    if row["made"] is not None and row["made"] != now:
        yield warning(
            f"the database's collation has version {now}, its indexes were made with {row['made']}: keys may not be "
            "found",
            f"reindex database {_name(context.connection.info.dbname)}; alter database … refresh collation version",
            value=now,
        )
    else:
        yield ok("the indexes were made with the server's version of the collation")


def _name(name: str) -> str:
    return sql.Identifier(name).as_string()
