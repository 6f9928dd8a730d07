"""Loads from Spark: which are under way, which of their parts are written, and which runs were applied.

Revision ID: 0006
Revises: 0005
"""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

UPGRADE = (
    """
    create table pgcombine.spark_load (
        load       uuid primary key,
        number     bigint not null generated always as identity,
        queue      text not null references pgcombine.queue on delete cascade,
        run_id     text not null,
        kind       text not null check (kind in ('stage', 'token', 'values')),
        started_at timestamptz not null default now(),
        seen_at    timestamptz not null default now(),
        ended_at   timestamptz
    )
    """,
    """
    comment on table pgcombine.spark_load is
        'Loads from Spark under way. Their rows wait in the unlogged table spark_stage_<number>, but for token loads.'
    """,
    "comment on column pgcombine.spark_load.seen_at is 'When a writer was last heard of, to the minute.'",
    "comment on column pgcombine.spark_load.ended_at is 'Ended while somebody was at the stage: it is to be dropped.'",
    "create unlogged table pgcombine.spark_alive (load uuid primary key)",
    """
    comment on table pgcombine.spark_alive is
        'Loads under way. A crash of the server empties it together with the stages: so that loss is noticed.'
    """,
    """
    create table pgcombine.spark_part (
        load uuid not null references pgcombine.spark_load on delete cascade,
        part integer not null,
        primary key (load, part)
    )
    """,
    "comment on table pgcombine.spark_part is 'Partitions that a token load has written.'",
    """
    create table pgcombine.spark_run (
        queue   text not null references pgcombine.queue on delete cascade,
        run_id  text not null,
        updates bigint not null,
        at      timestamptz not null default now(),
        stream  text generated always as (substring(run_id from '^stream:(.+):[0-9]{1,18}$')) stored,
        batch   bigint generated always as (substring(run_id from '^stream:.+:([0-9]{1,18})$')::bigint) stored,
        primary key (queue, run_id)
    )
    """,
    "create index spark_run_stream on pgcombine.spark_run (queue, stream, batch) where stream is not null",
    """
    comment on table pgcombine.spark_run is
        'Runs whose updates are in the queue: a run of the same id changes nothing. The batches of a stream are runs.'
    """,
)
DOWNGRADE = (
    """
    do $$
    declare
        _stage regclass;
    begin
        for _stage in
            select c.oid from pg_class c
            where c.relnamespace = 'pgcombine'::regnamespace and c.relkind = 'r' and c.relname ~ '^spark_stage_[0-9]+$'
        loop
            execute format('drop table %s', _stage);
        end loop;
    end
    $$
    """,
    "drop table pgcombine.spark_run",
    "drop table pgcombine.spark_part",
    "drop table pgcombine.spark_alive",
    "drop table pgcombine.spark_load",
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})


def downgrade() -> None:
    for statement in DOWNGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})
