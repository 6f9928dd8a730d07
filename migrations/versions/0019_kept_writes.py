"""Servers keep the text of a write until all its replicas have it. Servers that must be compared are marked.

Revision ID: 0019
Revises: 0018
"""

from __future__ import annotations

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

# These return other columns now.
CHANGED = (
    "drop function if exists pgcombine_internal.handoff_page(text, uuid, interval, integer, integer)",
    "drop function if exists pgcombine_internal.handoff_route(text, text, text[], integer)",
)
UPGRADE = (
    *CHANGED,
    """
    create table pgcombine.handoff_kept (
        token    uuid primary key,
        queue    text not null,
        shape    uuid not null,
        digest   uuid not null,
        servers  text[],
        placed   text[],
        replicas integer,
        home     uuid not null,
        updates  integer not null,
        payload  text not null,
        since    timestamptz not null default now()
    ) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
            autovacuum_vacuum_insert_threshold = -1)
    """,
    "create index handoff_kept_home on pgcombine.handoff_kept (queue, home)",
    """
    comment on table pgcombine.handoff_kept is
        'Writes that came from another server, until all servers that hold them are known to have them.'
    """,
    "comment on column pgcombine.handoff_kept.placed is 'All servers; replicas of them hold a key.'",
    "comment on column pgcombine.handoff_kept.home is 'The id of the server whose hint this was.'",
    """
    alter table pgcombine.handoff_server
        add column needs_repair text,
        add column repairing uuid,
        add column max_kept_bytes bigint not null default 4294967296 check (max_kept_bytes >= 0),
        add column unkept_at timestamptz
    """,
    "comment on column pgcombine.handoff_server.needs_repair is 'Why this server may lack writes; null: it doesn''t.'",
    "comment on column pgcombine.handoff_server.repairing is 'A comparison that began after needs_repair was set.'",
    "comment on column pgcombine.handoff_server.max_kept_bytes is 'Quota of handoff_kept; beyond it nothing is kept.'",
    "comment on column pgcombine.handoff_server.unkept_at is 'When a write was not kept, because of the quota.'",
    "alter table pgcombine.handoff_replica add column by_tokens boolean not null default false",
    # whoever may replay may drop the texts, and mark, too
    """
    do $$
    declare
        _role name;
    begin
        for _role in
            select r.rolname
            from pg_class c cross join lateral aclexplode(c.relacl) a join pg_roles r on r.oid = a.grantee
            where c.oid = 'pgcombine.handoff_hint'::regclass and a.grantee <> c.relowner and a.privilege_type = 'DELETE'
        loop
            execute format('grant select, delete on pgcombine.handoff_kept to %I', _role);
            execute format('grant update (by_tokens) on pgcombine.handoff_replica to %I', _role);
        end loop;
    end
    $$
    """,
    """
    comment on column pgcombine.handoff_replica.by_tokens is
        'Whether needs_repair ends when the servers'' tokens are equal; else the server has to be rebuilt.'
    """,
    "alter table pgcombine.handoff_queue add column former text[] not null default '{}'",
    "comment on column pgcombine.handoff_queue.former is 'Servers that writers named before, and name no more.'",
    "alter table pgcombine.handoff_queue add column placed text[]",
    """
    comment on column pgcombine.handoff_queue.placed is
        'The servers that the last writer named, those among them that were removed included: keys are placed by them.'
    """,
)
DOWNGRADE = (
    *CHANGED,
    "alter table pgcombine.handoff_queue drop column placed",
    "alter table pgcombine.handoff_queue drop column former",
    "alter table pgcombine.handoff_replica drop column by_tokens",
    """
    alter table pgcombine.handoff_server
        drop column needs_repair, drop column repairing, drop column max_kept_bytes, drop column unkept_at
    """,
    "drop table pgcombine.handoff_kept",
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})


def downgrade() -> None:
    for statement in DOWNGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})
