"""Rebuilding servers: which queues several servers hold, rebuilds under way, writes that are there in part; retries.
Exports that one of the servers owns.

Revision ID: 0010
Revises: 0009
"""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

UPGRADE = (
    """
    create table pgcombine.handoff_queue (
        queue    text primary key,
        servers  text[],
        replicas integer
    )
    """,
    """
    comment on table pgcombine.handoff_queue is
        'Queues that other servers hold as well; all the servers and how many hold a key, as a writer told last.'
    """,
    "insert into pgcombine.handoff_queue (queue) select distinct queue from pgcombine.handoff_token",
    """
    create table pgcombine.handoff_partial (
        token uuid primary key,
        slots integer[] not null
    )
    """,
    """
    comment on table pgcombine.handoff_partial is
        'Writes whose updates of these slots of keys came with a rebuild from several servers; the others are to come.'
    """,
    "alter table pgcombine.handoff_replica add column repairing uuid",
    "comment on column pgcombine.handoff_replica.repairing is 'A rebuild that began after what needs_repair tells of.'",
    "alter table pgcombine.handoff_hint add column origin uuid",
    "comment on column pgcombine.handoff_hint.origin is 'The write of which the server refused this; null: none.'",
    """
    alter table pgcombine.export
        add column owner text,
        add column epoch bigint not null default 0,
        add column sweep bigint
    """,
    """
    comment on column pgcombine.export.owner is
        'The server that delivers it, as this one knows; null: whichever holds it (there is but one).'
    """,
    "comment on column pgcombine.export.epoch is 'Grows with each change of owner; a destination obeys the highest.'",
    """
    comment on column pgcombine.export.sweep is
        'Up to this sequence a full state is on its way: then what it lacks is deleted at the destination.'
    """,
)
DOWNGRADE = (
    "drop view if exists pgcombine.export_status",
    "alter table pgcombine.export drop column owner, drop column epoch, drop column sweep",
    "alter table pgcombine.handoff_hint drop column origin",
    "alter table pgcombine.handoff_replica drop column repairing",
    "drop table pgcombine.handoff_partial, pgcombine.handoff_queue",
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})


def downgrade() -> None:
    for statement in DOWNGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})
