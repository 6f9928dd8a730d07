"""Export queues: which there are, their buckets, the sequence of their entries, and entries that were refused.

Revision ID: 0008
Revises: 0007
"""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

UPGRADE = (
    "create sequence pgcombine.export_sequence",
    """
    create table pgcombine.export (
        export     text primary key,
        queue      text not null references pgcombine.queue,
        exporter   text not null check (exporter in ('python', 'postgres', 'files', 'webhook')),
        target     text,
        target_table text,
        buckets    integer not null check (buckets between 1 and 1024),
        batch      integer not null check (batch > 0),
        compact    boolean not null,
        created_at timestamptz not null default now()
    )
    """,
    """
    comment on table pgcombine.export is
        'One row an export: changes of which queue are delivered, by which exporter, to where (without a password).'
    """,
    """
    create table pgcombine.export_bucket (
        export       text not null references pgcombine.export on delete cascade,
        bucket       integer not null,
        delivered    bigint not null default 0,
        delivered_at timestamptz,
        primary key (export, bucket)
    )
    """,
    """
    comment on table pgcombine.export_bucket is
        'One row a bucket of an export, locked by who delivers from it; and how many entries were delivered.'
    """,
    """
    create table pgcombine.export_quarantine (
        export text not null references pgcombine.export on delete cascade,
        seq    bigint not null,
        entry  jsonb not null,
        error  text not null,
        since  timestamptz not null default now(),
        primary key (export, seq)
    )
    """,
    """
    comment on table pgcombine.export_quarantine is
        'Entries that a destination refused for their data: they wait for somebody to retry or to drop them.'
    """,
)
DOWNGRADE = (
    """
    do $$
    declare
        _export record;
    begin
        for _export in select export, queue from pgcombine.export loop
            delete from pgcombine.observer where queue = _export.queue and observer = 'export ' || _export.export;
            execute format('drop table if exists pgcombine.%I', _export.export || '_exports');
            delete from pgcombine.destination_state where kind = 'export' and name = _export.export;
        end loop;
    end
    $$
    """,
    "drop view if exists pgcombine.export_status",
    "drop trigger if exists pgcombine_exported on pgcombine.queue",
    # they return a row of the table
    "drop function if exists pgcombine.require_export(text), pgcombine.claim_deliveries(text, text)",
    "drop function if exists pgcombine.begin_handover(text)",
    "drop table pgcombine.export_quarantine, pgcombine.export_bucket, pgcombine.export",
    "drop sequence pgcombine.export_sequence",
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})


def downgrade() -> None:
    for statement in DOWNGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})
