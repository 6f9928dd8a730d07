"""Observers, bounded passes, and a record of passes that fail.

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
    alter table pgcombine.queue
        add column fold text not null default '',
        add column pass_limit integer not null default 200000 check (pass_limit > 0)
    """,
    "comment on column pgcombine.queue.pass_limit is 'How many updates a pass takes at once, about.'",
    """
    create table pgcombine.observer (
        queue     text not null references pgcombine.queue on delete cascade,
        observer  text not null,
        position  integer not null generated always as identity,
        statement text not null,
        primary key (queue, observer)
    )
    """,
    "comment on table pgcombine.observer is 'Statements over the relation changes, run inside every pass.'",
    """
    create table pgcombine.failure (
        queue    text not null,
        bucket   integer not null,
        attempts integer not null,
        sqlstate text,
        error    text not null,
        since    timestamptz not null default now(),
        last     timestamptz not null default now(),
        primary key (queue, bucket),
        foreign key (queue, bucket) references pgcombine.bucket on delete cascade
    )
    """,
    """
    comment on table pgcombine.failure is
        'Buckets whose pass failed last, and how often in a row: written apart from the pass, which rolls back.'
    """,
)
DOWNGRADE = (
    "drop table pgcombine.failure",
    "drop table pgcombine.observer",
    "alter table pgcombine.queue drop column fold, drop column pass_limit",
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})


def downgrade() -> None:
    for statement in DOWNGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})
