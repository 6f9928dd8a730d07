"""Keys expire: a queue's condition, how often a bucket is looked through for it, and how far that has got.

Revision ID: 0022
Revises: 0021
"""

from __future__ import annotations

from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

UPGRADE = (
    """
    alter table pgcombine.queue
        add column retain text,
        add column retain_silently boolean not null default false,
        add column retain_every interval not null default '10 min'
    """,
    "comment on column pgcombine.queue.retain is 'Keys for which this condition is false are removed.'",
    "comment on column pgcombine.queue.retain_silently is 'Whether observers and exports don''t see that.'",
    "comment on column pgcombine.queue.retain_every is 'How often workers look through a bucket for such keys.'",
    """
    create table pgcombine.retention (
        queue  text not null references pgcombine.queue on delete cascade,
        bucket integer not null, -- no foreign key: its check would wait for passes over the bucket
        page   bigint not null check (page between 0 and 4294967295),
        due    timestamptz not null,
        primary key (queue, bucket)
    ) with (fillfactor = 50)
    """,
    """
    comment on table pgcombine.retention is
        'How far workers have looked through the pages of a bucket''s values for expired keys, and when they go on.'
    """,
    "alter table pgcombine.retention enable row level security",
    "alter type pgcombine.plan add attribute first_page bigint, add attribute pages integer, "
    "add attribute most integer",
)
DOWNGRADE = (
    # revision 0017 moves functions that it doesn't know as public ones to the other schema, where they would stay
    "drop procedure if exists pgcombine.retain(text, bigint)",
    "drop function if exists pgcombine.set_retain(text, text, boolean, interval)",
    "alter type pgcombine.plan drop attribute first_page, drop attribute pages, drop attribute most",
    "drop table pgcombine.retention",
    "alter table pgcombine.queue drop column retain, drop column retain_silently, drop column retain_every",
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})


def downgrade() -> None:
    for statement in DOWNGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})
