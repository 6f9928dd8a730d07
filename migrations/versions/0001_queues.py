"""Queues: their catalog. The queues' own tables are made by pgcombine.create_queue.

Revision ID: 0001
Revises:
"""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

UPGRADE = (
    """
    create table pgcombine.queue (
        queue       text primary key,
        buckets     integer not null check (buckets between 1 and 1024),
        delete_when text,
        notify      boolean not null default true,
        paused      boolean not null default false,
        pass        text not null default '',
        created_at  timestamptz not null default now()
    )
    """,
    """
    comment on table pgcombine.queue is
        'One row a combine queue; pass is the generated SQL of its pass, its pair of tables left open.'
    """,
    """
    create table pgcombine.queue_column (
        queue    text not null references pgcombine.queue on delete cascade,
        position integer not null,
        role     text not null check (role in ('key', 'value')),
        name     text not null,
        type     text not null,
        combiner text check ((combiner is null) = (role = 'key')),
        primary key (queue, position),
        unique (queue, name)
    )
    """,
    "comment on table pgcombine.queue_column is 'Key and value columns of the queues, keys first.'",
    """
    create table pgcombine.bucket (
        queue  text not null references pgcombine.queue on delete cascade,
        bucket integer not null check (bucket between 0 and 1023),
        primary key (queue, bucket)
    )
    """,
    """
    comment on table pgcombine.bucket is
        'One row a bucket. A pass locks its row (FOR UPDATE SKIP LOCKED) and never writes it: no dead rows.'
    """,
    """
    create table pgcombine.combiner (
        combiner text primary key,
        fold     text not null,
        merge    text not null,
        initial  text,
        types    text[]
    )
    """,
    """
    comment on table pgcombine.combiner is
        'Built-in combiners: fold is an aggregate over %1$s, merge joins old %1$s and folded %2$s, %3$s is the type.'
    """,
    """
    create table pgcombine.repeatable (
        one    boolean primary key default true check (one),
        digest text not null
    )
    """,
    "comment on table pgcombine.repeatable is 'Digest of the functions, triggers and views that were applied last.'",
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})


def downgrade() -> None:
    # What the repeatable SQL and create_queue made depends on these tables; schema.downgrade drops the rest.
    drop = """
        do $$
        declare
            _relation record;
        begin
            for _relation in
                select c.relname, c.relkind
                from pg_class c
                where c.relnamespace = 'pgcombine'::regnamespace
                  and c.relkind in ('r', 'p', 'v') and not c.relispartition
                  and c.relname <> 'schema_version'
            loop
                execute format('drop %s if exists pgcombine.%I cascade',
                    case _relation.relkind when 'v' then 'view' else 'table' end, _relation.relname);
            end loop;
        end
        $$
    """
    op.get_bind().exec_driver_sql(drop, execution_options={"no_parameters": True})
