"""``pgcombine queue create|create-tier|ls|show|pause|resume|drop|rebucket|move-shard`` and ``pgcombine verify``."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from pgcombine.cli.options import (
    Buckets,
    Dsn,
    Json,
    QueueName,
    Yes,
    confirm,
    described,
    echo,
    group,
    note_quarantined,
    open_database,
    print_json,
    quarantined_fields,
    report_problems,
    report_state,
    report_table,
    resolve_dsn,
    seconds,
    whole,
)
from pgcombine.queue import dropping
from pgcombine.queue import status as figures
from pgcombine.queue.combine_queue import CombineQueue

queue = group("Make, show, pause, rebucket and drop queues.")


@queue.command()
def create(
    name: QueueName,
    key: Annotated[list[str], typer.Option("--key", help="Key column such as 'word text'; repeat for several.")],
    value: Annotated[
        list[str], typer.Option("--value", help="Value column such as 'n bigint sum'; repeat for several.")
    ],
    delete_when: Annotated[
        str | None,
        typer.Option(
            "--delete-when", help="Delete a key if this condition is true for its new values, such as 'n = 0'."
        ),
    ] = None,
    buckets: Buckets = 1,
    notify: Annotated[bool, typer.Option(help="Whether enqueues wake sleeping workers.")] = True,
    per_partition: Annotated[
        int, typer.Option("--buckets-per-partition", callback=whole(32), help="Number of buckets that share tables.")
    ] = 1,
    tablespace: Annotated[
        list[str] | None, typer.Option("--tablespace", help="Tablespace of the tables; repeat to spread them.")
    ] = None,
    max_backlog: Annotated[
        int | None,
        typer.Option(
            "--max-backlog", callback=whole(64), help="Approximate limit of pending updates, above which enqueues fail."
        ),
    ] = None,
    pass_limit: Annotated[
        int | None, typer.Option("--pass-limit", callback=whole(32), help="Approximate limit of updates in a pass.")
    ] = None,
    quarantine_after: Annotated[
        int,
        typer.Option(
            "--quarantine-after", callback=whole(32), help="Failed passes in a row until failing keys are quarantined."
        ),
    ] = 5,
    expire_when: Annotated[
        str | None,
        typer.Option("--expire-when", help="Condition on key and value columns; keys for which it is true expire."),
    ] = None,
    expire_silently: Annotated[
        bool, typer.Option("--expire-silently", help="Don't tell observers and exports about expired keys.")
    ] = False,
    expire_every: Annotated[
        float | None,
        typer.Option("--expire-every", callback=seconds, help="Seconds between two searches for expired keys (600)."),
    ] = None,
    token_retention: Annotated[
        float | None,
        typer.Option("--token-retention", callback=seconds, help="Seconds for which tokens are kept (14 days)."),
    ] = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Accept a queue that exists with the same definition.")
    ] = False,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Make a queue.

    Example: pgcombine queue create wc --key 'word text' --value 'n bigint sum' --delete-when 'n = 0'
    """
    with open_database(dsn) as connection:
        CombineQueue(
            name,
            key=key,
            value=value,
            delete_when=delete_when,
            buckets=buckets,
            notify=notify,
            buckets_per_partition=per_partition,
            tablespaces=tablespace or (),
            max_backlog=max_backlog,
            pass_limit=pass_limit,
            quarantine_after=quarantine_after,
            expire_when=expire_when,
            expire_silently=expire_silently,
            expire_every=None if expire_every is None else timedelta(seconds=expire_every),
            token_retention=None if token_retention is None else timedelta(seconds=token_retention),
        ).create(connection, if_not_exists=if_not_exists)
    report_state("queue", name, "created", as_json)


@queue.command()
def create_tier(
    name: QueueName,
    source: Annotated[str, typer.Option("--source", help="Queue that feeds the tier.")],
    key: Annotated[
        list[str],
        typer.Option("--key", help="Expression over key columns of the source, with a name; repeat for several."),
    ],
    buckets: Buckets = 1,
    expire_when: Annotated[
        str | None,
        typer.Option(
            "--expire-when", help="Condition on key and value columns; keys for which it is true are removed."
        ),
    ] = None,
    existing: Annotated[bool, typer.Option(help="Whether the tier gets the source's present values, too.")] = True,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Accept a tier that exists with the same source and definition.")
    ] = False,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Make a tier: a queue with a coarser key and the same value columns as the queue that feeds it.

    Example: pgcombine queue create-tier day --source hour --key 'hour::date as day' --key page
    """
    with open_database(dsn) as connection:
        CombineQueue(name, key=key, buckets=buckets, expire_when=expire_when).create_tier(
            connection, source, existing=existing, if_not_exists=if_not_exists
        )
    report_state("queue", name, "created", as_json)


@queue.command("ls")
def list_queues(dsn: Dsn = None, as_json: Json = False) -> None:
    """List the queues.

    Example: pgcombine queue ls --json
    """
    with open_database(dsn) as connection:
        found = figures.definitions(connection)
    rows = [(q["queue"], ", ".join(q["key"]), ", ".join(q["value"]), q["buckets"], q["paused"]) for q in found]
    report_table(found, ["queue", "key", "value", "buckets", "paused"], rows, as_json)


@queue.command()
def show(name: QueueName, dsn: Dsn = None, as_json: Json = False) -> None:
    """Show a queue's definition and the SQL of its pass.

    Example: pgcombine queue show wc
    """
    with open_database(dsn) as connection:
        definition = figures.definition(connection, name)
        pass_sql = figures.pass_sql(connection, name)
    if as_json:
        print_json({**definition, "combine_sql": pass_sql})
        return
    for field, content in definition.items():
        echo(f"{field + ':':22} {', '.join(content) if isinstance(content, list) else content}")
    typer.echo(f"\n{pass_sql}")


@queue.command()
def pause(name: QueueName, dsn: Dsn = None, as_json: Json = False) -> None:
    """Stop passes over a queue; enqueues go on.

    Example: pgcombine queue pause wc
    """
    with open_database(dsn) as connection:
        CombineQueue(name).pause(connection)
    report_state("queue", name, "paused", as_json)


@queue.command()
def resume(name: QueueName, dsn: Dsn = None, as_json: Json = False) -> None:
    """Let passes over a queue go on, and let workers try its failing buckets again at once.

    Example: pgcombine queue resume wc
    """
    with open_database(dsn) as connection:
        CombineQueue(name).resume(connection)
    report_state("queue", name, "resumed", as_json)


@queue.command()
def drop(
    name: QueueName,
    force: Annotated[
        bool, typer.Option("--force", help="Drop the queue even if it has pending updates or exports; they are lost.")
    ] = False,
    yes: Yes = False,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Drop a queue with its values; if the command is interrupted, run it again.

    Example: pgcombine queue drop wc --yes
    """
    with open_database(dsn) as connection:
        lost = [] if yes else figures.contents(connection, name)
        if lost:  # empty with --yes, or if the queue doesn't exist or an interrupted drop left only a part of it
            confirm(f'queue "{name}" will be lost with {described(lost)}', yes=yes)
        dropping.drop(connection, name, force=force)
    report_state("queue", name, "dropped", as_json)


@queue.command()
def rebucket(
    name: QueueName,
    buckets: Annotated[int, typer.Argument(metavar="N", callback=whole(32), help="Number of buckets, 1 to 1024.")],
    per_partition: Annotated[
        int | None,
        typer.Option(
            "--buckets-per-partition",
            callback=whole(32),
            help="Number of buckets that share tables. Default: unchanged.",
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", callback=seconds, help="Seconds to wait for the lock of the last step.")
    ] = 300,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Change the number of buckets; writers and workers needn't be stopped.

    Example: pgcombine queue rebucket wc 64
    """
    with open_database(dsn) as connection:
        CombineQueue(name).rebucket(connection, buckets, buckets_per_partition=per_partition, timeout=timeout)
    report_state("queue", name, "rebucketed", as_json)


@queue.command("move-shard")
def move_shard(
    name: QueueName,
    shard: Annotated[int, typer.Argument(metavar="SHARD", callback=whole(32), help="Number of the shard, from 0.")],
    node: Annotated[str, typer.Argument(metavar="NODE", help="The foreign server that gets the shard.")],
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Move a shard of a front to another node; during a part of the move, writers of the shard wait.

    Run the same command again to complete a move that was killed. To cancel such a move, move the shard to the node
    that still has it.

    Example: pgcombine queue move-shard wc 3 n2
    """
    from pgcombine.shard import moving

    moving.move_shard(resolve_dsn(dsn), name, shard, node)
    report_state("queue", name, "moved", as_json)


def verify(name: QueueName, dsn: Dsn = None, as_json: Json = False) -> None:
    """Check a whole queue and print its problems; exit status 1 if there are any.

    Example: pgcombine verify wc
    """
    with open_database(dsn) as connection:
        problems = CombineQueue(name).verify(connection)
        quarantined = figures.quarantined(connection, name)
    report_problems("queue", name, problems, as_json, **quarantined_fields(*quarantined))
    note_quarantined(name, *quarantined)
