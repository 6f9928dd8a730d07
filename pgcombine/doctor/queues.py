"""Checks of queues, and of rollups, fronts, exports, feeds, other servers, loads from Spark, and workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pgcombine.doctor.findings import Context, Finding, error, info, megabytes, ok, warning
from pgcombine.rollup import rollup as tables


def queues(context: Context) -> Iterator[Finding]:
    """Whether the queues exist, with their backlog, lag and rate."""
    there = {row["queue"] for row in context.stats}
    for name in context.queues:
        if name not in there:
            yield error(
                f'there is no queue "{name}", or the role has no right on it',
                "pgcombine queue ls lists the queues",
                subject=name,
            )
    if not there and not context.queues and not context.shards:
        yield info("there is no queue that the role may use", "pgcombine queue create makes one")
    for row in context.stats:
        figures = f"about {row['pending']} pending, lag {row['lag_seconds']:.0f} s"
        yield ok(
            f"{figures}, {row['updates_per_second_1m']:.0f} updates combined/s",
            subject=row["queue"],
            value=row["pending"],
        )


def workers(context: Context) -> Iterator[Finding]:
    """Whether workers are connected."""
    found = context.workers
    if not found and any(row["pending"] and not row["paused"] for row in context.stats):
        yield warning("no worker is connected, and updates are pending", "pgcombine worker", value=0)
    elif not found and (context.stats or not context.shards):
        yield info("no worker is connected", "pgcombine worker; or combine from cron", value=0)
    for worker in found:
        if worker["state"] == "connecting":
            yield warning(
                f"worker {worker['worker']} has {len(worker['pids'])} connections, fewer than it needs",
                "if it stays so, its log says why (worker.waiting): raise the limit of connections, or lower "
                "--concurrency",
                value=len(worker["pids"]),
            )
        elif worker["state"] == "waiting":
            yield info(
                f"worker {worker['worker']} waits for a lock",
                "if it stays so: select pid, pg_blocking_pids(pid) from pg_stat_activity",
            )
    if found:
        yield ok(f"connected: {', '.join(worker['worker'] for worker in found)}", value=len(found))


def paused(context: Context) -> Iterator[Finding]:
    """Whether queues are paused."""
    for row in context.stats:
        if row["paused"]:
            late = row["lag_seconds"] > context.limits.lag
            yield (warning if late else info)(
                f"paused, about {row['pending']} updates are pending"
                + (f", the oldest for {row['lag_seconds']:.0f} s" if late else ""),
                f"pgcombine queue resume {row['queue']}, if it was forgotten",
                subject=row["queue"],
                value=row["pending"],
            )


def lag(context: Context) -> Iterator[Finding]:
    """Whether the oldest pending update of a queue is too old, and whether passes end."""
    limit = context.limits.lag
    for row in context.stats:
        if row["paused"] or row["lag_seconds"] <= limit:
            continue
        name = row["queue"]
        ended = row["last_pass_seconds"] is not None and row["last_pass_seconds"] <= limit
        if not ended and (row["pass_seconds"] or 0.0) > limit / 2:
            yield warning(
                f"a pass has run for {row['pass_seconds']:.0f} s: about {row['pending']} updates are pending, "
                f"the oldest for {row['lag_seconds']:.0f} s",
                "let the pass end; a smaller pass_limit makes passes shorter; pg_stat_activity shows its statement",
                subject=name,
                value=row["lag_seconds"],
            )
        elif not ended:
            yield error(
                f"stalled: about {row['pending']} updates are pending, the oldest for {row['lag_seconds']:.0f} s, "
                f"and no pass has ended in the last {limit:g} s",
                "start a worker (pgcombine worker); if one runs, check its queues, its role's rights, and whether it "
                f"waits for a lock; pgcombine drain {name} shows the error of a pass",
                subject=name,
                value=row["lag_seconds"],
            )
        else:
            yield warning(
                f"workers are late: the lag is {row['lag_seconds']:.0f} s, about {row['pending']} updates are pending",
                "start more workers, or raise --concurrency, up to the number of buckets",
                subject=name,
                value=row["lag_seconds"],
            )


def buckets(context: Context) -> Iterator[Finding]:
    """Whether passes over a queue take most of the time of all its buckets, so that more buckets would help."""
    names = {row["queue"] for row in context.stats}
    for row in context.rows("doctor_buckets"):
        if row["queue"] in names:
            yield info(
                f"passes took {row['share']:.0%} of the last four minutes in each of its {row['buckets']} buckets",
                f"pgcombine queue rebucket {row['queue']} {2 * row['buckets']}, if the server has a core to spare; "
                "then run workers with as many loops",
                subject=row["queue"],
                value=round(row["share"], 2),
            )


def locked(context: Context) -> Iterator[Finding]:
    """Whether another session keeps the tables of a queue locked."""
    for row in context.stats:
        if row["pending_seconds"] is None or row["pending_seconds"] > context.limits.answer:
            yield warning(
                "another session has locked the queue's tables, so pending updates can't be counted",
                "pg_stat_activity shows the session (pid, query_start, state); let its transaction end",
                subject=row["queue"],
            )


def _cause(row: Mapping[str, Any]) -> str:
    """Return the SQLSTATE of a failure, and the error's message if the role may see it."""
    return f"SQLSTATE {row['sqlstate']}" + (f": {row['error']}" if row["error"] else "")


def _reason(row: Mapping[str, Any]) -> str:
    """Return a colon and the reason why deliveries fail, or an empty text if the row has no reason."""
    return f": {row['reason']}" if row["reason"] else ""


def failing(context: Context) -> Iterator[Finding]:
    """Buckets whose passes fail, and buckets in which passes failed to remove expired keys."""
    names = {row["queue"] for row in context.stats}
    seen = {row["queue"]: row for row in context.rows("doctor_failures")}
    for row in context.stats:
        if row["failing_buckets"] and row["queue"] not in seen:
            yield error(
                f"{row['failing_buckets']} of its buckets fail",
                "pgcombine status shows why, to a role with the right work or monitor",
                subject=row["queue"],
                value=row["failing_buckets"],
            )
    for row in seen.values():
        if row["queue"] not in names:
            continue
        times = f"one {row['attempts']} times since {row['since']:%Y-%m-%d %H:%M}"
        yield error(
            f"{row['buckets']} of its buckets fail, {times}, last with {_cause(row)}",
            f"pgcombine status shows the error of each bucket, pgcombine queue show {row['queue']} the statement; "
            f"pgcombine queue resume {row['queue']} tries again at once; "
            "failing keys are quarantined after some attempts",
            subject=row["queue"],
            value=row["attempts"],
        )
    for row in context.rows("doctor_expiry"):
        if row["queue"] in names:
            yield warning(
                f"in {row['buckets']} of its buckets expired keys weren't removed, last at "
                f"{row['failed_at']:%Y-%m-%d %H:%M} with {_cause(row)}",
                "correct the observer or the condition, or the values in the pages that pgcombine.expiry names",
                subject=row["queue"],
                value=row["buckets"],
            )


def quarantine(context: Context) -> Iterator[Finding]:
    """Quarantined keys."""
    for row in context.stats:
        if row["quarantined_keys"]:
            yield warning(
                f"{row['quarantined_keys']} keys are quarantined, with {row['quarantined_updates']} updates that no "
                "value contains",
                f"pgcombine quarantine ls {row['queue']}; then retry or drop them",
                subject=row["queue"],
                value=row["quarantined_keys"],
            )


def backlog(context: Context) -> Iterator[Finding]:
    """Whether the backlog of a queue is near its limit."""
    for row in context.stats:
        if row["max_backlog"] and row["pending"] > 0.8 * row["max_backlog"]:
            yield warning(
                f"{row['pending']} updates are pending; at {row['max_backlog']}, enqueues fail",
                "start more workers, or let producers wait",
                subject=row["queue"],
                value=row["pending"],
            )


def segments(context: Context) -> Iterator[Finding]:
    """The size of the segments that wait to be truncated."""
    names = {row["queue"] for row in context.stats}
    for row in context.rows("doctor_segments"):
        if row["queue"] in names and row["waiting_bytes"] > context.limits.waiting_bytes:
            yield warning(
                f"{row['waiting']} segments with {megabytes(row['waiting_bytes'])} wait to be truncated",
                "end old snapshots (see the check snapshots), run a worker, and grant pg_read_all_stats to its role",
                subject=row["queue"],
                value=row["waiting_bytes"],
            )


def structure(context: Context) -> Iterator[Finding]:
    """Whether tables, columns, triggers and the passes' statement fit the definition. Rows aren't checked."""
    for row in context.stats:
        problems = [found["problem"] for found in context.rows("doctor_structure", *[row["queue"]] * 2)]
        for problem in problems:
            yield error(
                problem,
                "pgcombine db upgrade creates the triggers, functions and views again; "
                f"pgcombine verify {row['queue']} checks more",
                subject=row["queue"],
            )


def rollups(context: Context) -> Iterator[Finding]:
    """Rollups: whether they may miss changes of their tables, and whether they are backfilled."""
    names = {row["queue"] for row in context.stats}
    for row in tables.rollups(context.connection):
        name = row["rollup"]
        if name not in names:
            continue
        for problem in row["problems"]:
            yield error(
                problem,
                f"then pgcombine rollup verify {name} --repair adds the changes that the rollup has missed",
                subject=name,
            )
        if row["ready_at"] is None:
            yield info(
                f"{row['state']}: rows from before the rollup are missing",
                f"a worker brings them in; or pgcombine rollup backfill {name}",
                subject=name,
            )


def fronts(context: Context) -> Iterator[Finding]:
    """The shards of fronts, as their nodes report them."""
    named = context.queues
    for row in context.shards:
        name = f"{row['front']} shard {row['shard']}"
        if named and row["front"] not in named:
            continue
        there = f"run pgcombine doctor with the database of node {row['node']}"
        if row["problem"]:
            yield error(
                f"node {row['node']}: {row['problem']}",
                f"repair the node or its user mapping; pgcombine.check_front('{row['front']}') checks more",
                subject=name,
            )
        elif row["failing_buckets"] or row["quarantined_keys"]:
            yield warning(
                f"{row['failing_buckets']} buckets fail, and {row['quarantined_keys']} keys are quarantined",
                there,
                subject=name,
                value=row["quarantined_keys"],
            )
        elif row["lag_seconds"] > context.limits.lag:
            yield warning(
                f"the oldest of about {row['backlog']} pending updates is {row['lag_seconds']:.0f} s old",
                f"run pgcombine worker --front; then {there}",
                subject=name,
                value=row["lag_seconds"],
            )
        else:
            yield ok(
                f"node {row['node']} has about {row['backlog']} pending updates", subject=name, value=row["backlog"]
            )


def exports(context: Context) -> Iterator[Finding]:
    """Exports: their destinations, and their waiting and refused entries."""
    for row in context.rows("doctor_exports"):
        name = row["export"]
        if context.queues and row["queue"] not in context.queues:
            continue
        said = f"about {row['pending']} entries wait, the oldest for {row['lag_seconds']:.0f} s"
        again = f"pgcombine export resume {name} tries again at once"
        fine = True
        if row["quarantined"]:
            fine = False
            yield warning(
                f"its destination has refused {row['quarantined']} entries",
                f"pgcombine export quarantine ls {name}; then retry or drop them",
                subject=name,
                value=row["quarantined"],
            )
        if row["state"] == "down":
            yield error(
                f"its destination is down{_reason(row)}; {said}",
                f"repair the destination; {again}",
                subject=name,
                value=row["pending"],
            )
        elif row["state"] == "suspect":
            yield warning(
                f"the last deliveries failed{_reason(row)}; {said}",
                f"look at the destination; {again}",
                subject=name,
                value=row["failures"],
            )
        elif row["state"] == "paused":
            yield info(f"paused; {said}", f"pgcombine export resume {name}, if it was forgotten", subject=name)
        elif row["lag_seconds"] > context.limits.lag:
            yield warning(
                f"late: {said}",
                f"check that pgcombine export run {name} is running",
                subject=name,
                value=row["lag_seconds"],
            )
        elif fine:
            yield ok(said, subject=name, value=row["pending"])


def feeds(context: Context) -> Iterator[Finding]:
    """Feeds: registered consumers that have missed changes, or may miss some."""
    for row in context.rows("doctor_feeds"):
        if context.queues and row["queue"] not in context.queues:
            continue
        if row["too_old"]:
            yield warning(
                f'changes after the offset of consumer "{row["consumer"]}" are no longer kept',
                f"let the consumer read it all again, from a snapshot; or forget the consumer: {row['forget']}",
                subject=row["feed"],
            )
        else:
            yield warning(
                f'consumer "{row["consumer"]}" is {row["behind"]} changes behind, and the feed has '
                f"{megabytes(row['bytes'])}, more than max_bytes: changes no longer wait for the consumer",
                f"let the consumer read on; or forget the consumer: {row['forget']}",
                subject=row["feed"],
                value=row["behind"],
            )


def servers(context: Context) -> Iterator[Finding]:
    """Other servers that hold the same queues, and the writes that wait for them."""
    for row in context.rows("doctor_servers"):
        name = row["destination"]
        said = f"about {row['writes']} writes wait for it, the oldest for {row['oldest_seconds']:.0f} s"
        if row["needs_repair"]:
            yield error(
                f"it needs repair: {row['needs_repair']}",
                "pgcombine replicas repair, or pgcombine replicas rebuild",
                subject=name,
            )
        elif row["state"] in ("down", "suspect"):
            yield warning(
                f"it is {row['state']}: {row['reason']}; {said}",
                f"repair the server; pgcombine replicas replay {name} tries again at once",
                subject=name,
                value=row["writes"],
            )
        elif row["state"] == "paused":
            yield info(f"paused; {said}", f"pgcombine replicas resume {name}", subject=name, value=row["writes"])
        elif row["oldest_seconds"] > context.limits.lag:
            yield warning(
                f"late: {said}",
                "check that pgcombine replicas run, or pgcombine worker --handoff, is running",
                subject=name,
                value=row["oldest_seconds"],
            )
        else:
            yield ok(said, subject=name, value=row["writes"])


def loads(context: Context) -> Iterator[Finding]:
    """Loads from Spark that weren't seen alive for a long time."""
    for row in context.rows("doctor_loads"):
        if row["silent_seconds"] > context.limits.load:
            yield info(
                f"load {row['load']} ({row['run_id'] or 'without a run'}) was last alive "
                f"{row['silent_seconds']:.0f} s ago, and left {megabytes(row['bytes'])}",
                "pgcombine spark clean removes it; workers do so after a day",
                subject=row["queue"],
                value=row["bytes"],
            )
