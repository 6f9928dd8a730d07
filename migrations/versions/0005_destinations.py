"""Destinations: whether what is delivered to may be tried, known to all who deliver.

Revision ID: 0005
Revises: 0004
"""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

UPGRADE = (
    """
    create table pgcombine.destination_state (
        kind            text not null check (kind in ('export', 'server')),
        name            text not null,
        state           text not null default 'up' check (state in ('up', 'suspect', 'down', 'paused')),
        ticket          bigint not null default 0,
        failures        integer not null default 0,
        retry_at        timestamptz,
        reason          text,
        since           timestamptz not null default now(),
        last_success    timestamptz,
        last_failure    timestamptz,
        down_after      integer not null default 5 check (down_after > 0),
        backoff         interval not null default '0.5 s' check (backoff > '0'),
        longest_backoff interval not null default '1 min' check (longest_backoff > '0'),
        primary key (kind, name)
    )
    """,
    """
    comment on table pgcombine.destination_state is
        'Destinations of exports and of hinted handoff. Rows change with the state, not with deliveries.'
    """,
    """
    comment on column pgcombine.destination_state.ticket is
        'Grows with every change of the state and every probe: what an older attempt reports isn''t counted twice.'
    """,
)
DOWNGRADE = (
    "drop view if exists pgcombine.destination",
    "drop function if exists pgcombine.require_destination(text, text)",  # returns a row of the table
    "drop table pgcombine.destination_state",
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})


def downgrade() -> None:
    for statement in DOWNGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})
