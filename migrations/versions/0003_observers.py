"""Observers, bounded passes, a record of passes that fail; combiners with an order or of one's own, collations.

Revision ID: 0003
Revises: 0002
"""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

UPGRADE = (
    """
    alter table pgcombine.queue_column
        add column "collation" text,
        add column ordered_by text
    """,
    "comment on column pgcombine.queue_column.ordered_by is 'The value column that orders last and first.'",
    """
    alter table pgcombine.combiner
        add column function text,
        add column type text
    """,
    """
    comment on table pgcombine.combiner is
        'Built-in combiners; and functions and aggregates that queues use, for one type each.'
    """,
    "drop function if exists pgcombine.parse_column(text, text)",  # its result has changed
    """
    alter table pgcombine.queue
        add column fold text not null default '',
        add column pass_limit integer not null default 200000 check (pass_limit > 0),
        add column quarantine_after integer not null default 5 check (quarantine_after > 0)
    """,
    "comment on column pgcombine.queue.pass_limit is 'How many updates a pass takes at once, about.'",
    """
    alter table pgcombine.queue
        add column partitions integer check (buckets % partitions = 0),
        add column tablespaces text[],
        add column max_backlog bigint check (max_backlog > 0)
    """,
    "update pgcombine.queue set partitions = buckets",
    "alter table pgcombine.queue alter column partitions set not null",
    """
    comment on column pgcombine.queue.partitions is
        'Pairs of tables; bucket b is in number b modulo this, as a slice of it where there are more buckets.'
    """,
    """
    alter table pgcombine.bucket
        add column moves bigint not null default 0,
        add column since timestamptz
    """,
    """
    comment on column pgcombine.bucket.moves is
        'How often pending updates were written anew (folds, changes of the number of buckets): who waits, looks.'
    """,
    "comment on column pgcombine.bucket.since is 'Time of the oldest update that a fold has written anew.'",
    "create table pgcombine.tick (at timestamptz primary key)",
    """
    comment on table pgcombine.tick is
        'Moments, to date pending updates by: whose transaction (xmin) is older than a row''s began before it.'
    """,
    """
    comment on column pgcombine.queue.quarantine_after is
        'After how many failed passes in a row the keys at fault are looked for and quarantined.'
    """,
    """
    create table pgcombine.observer (
        queue     text not null references pgcombine.queue on delete cascade,
        observer  text not null,
        position  integer not null generated always as identity,
        language  text not null default 'sql' check (language in ('sql', 'python')),
        statement text,
        primary key (queue, observer),
        check ((statement is null) = (language = 'python'))
    )
    """,
    """
    comment on table pgcombine.observer is
        'What runs inside every pass: SQL statements over the relation changes, and functions of Python workers.'
    """,
    """
    create table pgcombine.failure (
        queue    text not null references pgcombine.queue on delete cascade,
        bucket   integer not null, -- no foreign key: its check would wait for passes over the bucket
        attempts integer not null,
        sqlstate text,
        error    text not null,
        since    timestamptz not null default now(),
        last     timestamptz not null default now(),
        retry_at timestamptz not null default now(),
        primary key (queue, bucket)
    )
    """,
    """
    comment on table pgcombine.failure is
        'Buckets whose pass failed last, and how often in a row: written apart from the pass, which rolls back.'
    """,
    """
    create table pgcombine.quarantined_key (
        queue    text not null references pgcombine.queue on delete cascade,
        hash     bigint not null,
        key      jsonb not null,
        updates  bigint not null,
        attempts integer not null,
        sqlstate text,
        error    text not null,
        since    timestamptz not null default now(),
        primary key (queue, hash)
    )
    """,
    """
    comment on table pgcombine.quarantined_key is
        'Keys that no pass takes, by the hash of the key; their updates are held in <queue>_quarantine.'
    """,
)
DOWNGRADE = (
    "drop table pgcombine.tick",
    "alter table pgcombine.bucket drop column moves, drop column since",
    "alter table pgcombine.queue drop column partitions, drop column tablespaces, drop column max_backlog",
    """
    do $$
    declare
        _queue text;
    begin
        for _queue in select queue from pgcombine.queue loop
            execute format('drop view if exists pgcombine.%I', _queue || '_current'); -- it reads the table below
            execute format('drop table if exists pgcombine.%I', _queue || '_quarantine');
        end loop;
    end
    $$
    """,
    "drop view if exists pgcombine.quarantine",
    "drop table pgcombine.quarantined_key",
    """
    do $$
    begin
        if exists (select from pgcombine.queue_column where "collation" is not null or ordered_by is not null)
           or exists (select from pgcombine.combiner where function is not null) then
            raise exception 'queues with collations, last, first or own combiners can''t go back to revision 0002'
                using hint = 'drop them first';
        end if;
    end
    $$
    """,
    "alter table pgcombine.combiner drop column function, drop column type",
    'alter table pgcombine.queue_column drop column "collation", drop column ordered_by',
    "drop table pgcombine.failure",
    "drop table pgcombine.observer",
    "alter table pgcombine.queue drop column fold, drop column pass_limit, drop column quarantine_after",
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})


def downgrade() -> None:
    for statement in DOWNGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})
