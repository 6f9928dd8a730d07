"""Hinted handoff: who this server is, the other servers, tokens, hints, what was delivered, what was refused.

Revision ID: 0007
Revises: 0006
"""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

UPGRADE = (
    """
    create table pgcombine.handoff_server (
        one               boolean primary key default true check (one),
        name              text not null,
        id                uuid not null default gen_random_uuid(),
        epoch             integer not null default 1,
        system_identifier bigint not null,
        retention         interval not null default '14 days' check (retention >= interval '1 hour'),
        replay_rate       integer check (replay_rate > 0)
    )
    """,
    """
    comment on table pgcombine.handoff_server is
        'Who this server is to the others that hold the same queues: one row, made at the first contact.'
    """,
    "comment on column pgcombine.handoff_server.epoch is 'Grows when the server''s data were replaced (rebuild).'",
    """
    comment on column pgcombine.handoff_server.retention is
        'How long tokens are kept, and how old a token may be: longer than any hint may live.'
    """,
    """
    comment on column pgcombine.handoff_server.replay_rate is
        'How many updates a second a replayer may deliver to this server; null: no limit.'
    """,
    """
    create table pgcombine.handoff_replica (
        name          text primary key,
        dsn           text not null,
        id            uuid,
        epoch         integer,
        max_rows      bigint not null default 10000000 check (max_rows > 0),
        max_bytes     bigint not null default 4294967296 check (max_bytes > 0),
        when_full     text not null default 'backpressure' check (when_full in ('backpressure', 'mark_repair')),
        rows          bigint not null default 0,
        bytes         bigint not null default 0,
        measured_at   timestamptz not null default '-infinity',
        needs_repair  text,
        delivered     bigint not null default 0,
        deduplicated  bigint not null default 0
    )
    """,
    """
    comment on table pgcombine.handoff_replica is
        'The other servers as this one, as a home, knows them: where (no password), who, quota, totals.'
    """,
    "comment on column pgcombine.handoff_replica.rows is 'Updates in hints, as of measured_at; so are bytes.'",
    "comment on column pgcombine.handoff_replica.needs_repair is 'Why hints alone can''t make it complete.'",
    """
    create table pgcombine.handoff_token (
        token   uuid primary key,
        queue   text not null,
        digest  uuid not null,
        servers text[]
    ) partition by range (token)
    """,
    """
    comment on table pgcombine.handoff_token is
        'Writes that are in this server''s queues; a partition a day, dropped when it is older than the retention.'
    """,
    "comment on column pgcombine.handoff_token.servers is 'Which servers hold updates of it; null: all.'",
    """
    create table pgcombine.handoff_hint (
        destination text not null references pgcombine.handoff_replica,
        token       uuid not null,
        queue       text not null,
        shape       uuid not null,
        digest      uuid not null,
        servers     text[],
        updates     integer not null,
        payload     text not null,
        since       timestamptz not null default now(),
        primary key (destination, token)
    ) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
            autovacuum_vacuum_insert_threshold = -1)
    """,
    """
    comment on table pgcombine.handoff_hint is
        'What another server has not acknowledged yet: written with the updates, deleted after its commit.'
    """,
    """
    create table pgcombine.handoff_delivery (
        destination  text not null references pgcombine.handoff_replica on delete cascade,
        at           timestamptz not null default clock_timestamp(),
        token        uuid not null,
        delivered    bigint not null,
        deduplicated bigint not null
    )
    """,
    "create index handoff_delivery_last on pgcombine.handoff_delivery (destination, at)",
    """
    comment on table pgcombine.handoff_delivery is
        'Acknowledgements, one row a page: the last tells whether a server has forgotten what it acknowledged.'
    """,
    """
    create table pgcombine.handoff_quarantine (
        destination text not null references pgcombine.handoff_replica on delete cascade,
        token       uuid not null,
        number      integer not null,
        queue       text not null,
        shape       uuid not null,
        payload     text not null,
        sqlstate    text,
        error       text not null,
        since       timestamptz not null default now(),
        primary key (destination, token, number)
    )
    """,
    """
    comment on table pgcombine.handoff_quarantine is
        'Updates that a server refused for their data; number is the place in the write, 0: the whole write.'
    """,
)
DOWNGRADE = (
    "drop view if exists pgcombine.handoff, pgcombine.hint",
    "drop table pgcombine.handoff_quarantine, pgcombine.handoff_delivery, pgcombine.handoff_hint",
    "drop table pgcombine.handoff_token, pgcombine.handoff_replica, pgcombine.handoff_server",
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})


def downgrade() -> None:
    for statement in DOWNGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})
