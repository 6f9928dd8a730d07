"""Servers know what they refused, what each has acknowledged, and which queues were dropped. Replayers make no hints.

Revision ID: 0027
Revises: 0026
"""

from __future__ import annotations

from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

# These return other columns now.
CHANGED = (
    "drop function if exists pgcombine_internal.handoff_page(text, uuid, interval, integer, integer)",
    "drop function if exists pgcombine_internal.handoff_survey(text)",
    "drop function if exists pgcombine_internal.handoff_copy_sql(text, integer[], text)",
)
# from everybody who isn't the owner and may replay
REVOKE = """
do $$
declare
    _role name;
begin
    for _role in
        select r.rolname
        from pg_class c cross join lateral aclexplode(c.relacl) a join pg_roles r on r.oid = a.grantee
        where c.oid = 'pgcombine.handoff_hint'::regclass and a.grantee <> c.relowner and a.privilege_type = 'DELETE'
    loop
        execute format('revoke insert, update on pgcombine.handoff_hint from %I', _role);
        execute format('grant update (since) on pgcombine.handoff_hint to %I', _role);
        execute format('revoke insert on pgcombine.handoff_quarantine, pgcombine.handoff_delivery from %I', _role);
    end loop;
end
$$
"""
GRANT = """
do $$
declare
    _role name;
begin
    for _role in
        select r.rolname
        from pg_class c cross join lateral aclexplode(c.relacl) a join pg_roles r on r.oid = a.grantee
        where c.oid = 'pgcombine.handoff_hint'::regclass and a.grantee <> c.relowner and a.privilege_type = 'DELETE'
    loop
        execute format('grant insert, update on pgcombine.handoff_hint to %I', _role);
        execute format('grant insert on pgcombine.handoff_quarantine, pgcombine.handoff_delivery to %I', _role);
    end loop;
end
$$
"""
UPGRADE = (
    *CHANGED,
    REVOKE,
    """
    create table pgcombine.handoff_refused (
        token    uuid not null,
        number   integer not null,
        queue    text not null,
        payload  text not null,
        sqlstate text,
        error    text,
        since    timestamptz not null default now(),
        primary key (token, number)
    )
    """,
    """
    comment on table pgcombine.handoff_refused is
        'Updates that this server lacks although it has their write''s token: it refused them for their data.'
    """,
    # the servers that refused these don't know it
    "alter table pgcombine.handoff_quarantine add column noted boolean not null default false",
    "alter table pgcombine.handoff_quarantine alter column noted set default true",
    "comment on column pgcombine.handoff_quarantine.noted is 'Whether the server has the update in handoff_refused.'",
    "alter table pgcombine.handoff_hint add column number integer",
    """
    comment on column pgcombine.handoff_hint.number is
        'The place of the update in the write origin; the server has it in handoff_refused. Null: it hasn''t.'
    """,
    "alter table pgcombine.handoff_delivery add column queue text, add column witness uuid",
    """
    comment on column pgcombine.handoff_delivery.witness is
        'A write to the queue that the server has, as any caller says; token says it only if a replayer does.'
    """,
    # the last writes of a home are those that it must have
    "drop index pgcombine.handoff_kept_home",
    "create index handoff_kept_home on pgcombine.handoff_kept (queue, home, since)",
    """
    alter table pgcombine.handoff_queue
        add column generation integer not null default 0,
        add column dropped_at timestamptz
    """,
    """
    comment on column pgcombine.handoff_queue.generation is
        'How many replicated queues of this name were dropped before; alike on all servers.'
    """,
)
DOWNGRADE = (
    *CHANGED,
    GRANT,
    "drop index pgcombine.handoff_kept_home",
    "create index handoff_kept_home on pgcombine.handoff_kept (queue, home)",
    "alter table pgcombine.handoff_queue drop column generation, drop column dropped_at",
    "alter table pgcombine.handoff_delivery drop column queue, drop column witness",
    "alter table pgcombine.handoff_hint drop column number",
    "alter table pgcombine.handoff_quarantine drop column noted",
    "drop table pgcombine.handoff_refused",
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})


def downgrade() -> None:
    for statement in DOWNGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})
