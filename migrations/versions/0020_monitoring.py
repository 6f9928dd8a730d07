"""What the views for monitoring read: passes by time, passes of each minute, samples, and ticks by transaction id.

Revision ID: 0020
Revises: 0019
"""

from __future__ import annotations

from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

UPGRADE = (
    "create index pass_ended on pgcombine.pass (queue, ended)",
    "create index tick_next_id on pgcombine.tick (next_id, at)",
    """
    create table pgcombine.pass_minute (
        queue   text not null references pgcombine.queue on delete cascade,
        minute  timestamptz not null,
        passes  bigint not null,
        updates bigint not null,
        keys    bigint not null,
        changes bigint not null,
        seconds double precision not null,
        primary key (queue, minute)
    )
    """,
    """
    comment on table pgcombine.pass_minute is
        'Sums of the journal: what the passes that ended in a minute took, and how long they took. Kept for a day.'
    """,
    """
    create table pgcombine.sample (
        queue   text not null references pgcombine.queue on delete cascade,
        kind    text not null check (kind in ('pending', 'sizes')),
        at      timestamptz not null,
        figures jsonb not null,
        primary key (queue, kind)
    ) with (fillfactor = 50)
    """,
    """
    comment on table pgcombine.sample is
        'Figures of queues that take too long to find for each look: what is pending, about, and sizes of tables.'
    """,
)
DOWNGRADE = (
    """
    drop view if exists pgcombine.queue_stat, pgcombine.bucket_stat, pgcombine.minute_stat, pgcombine.pass_recent,
        pgcombine.export_stat, pgcombine.hint_stat, pgcombine.load_stat, pgcombine.oldest_snapshot,
        pgcombine.segment_stat, pgcombine.table_size
    """,
    "drop table pgcombine.sample",
    "drop table pgcombine.pass_minute",
    "drop index pgcombine.tick_next_id",
    "drop index pgcombine.pass_ended",
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})


def downgrade() -> None:
    for statement in DOWNGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})
