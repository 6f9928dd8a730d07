"""What no user calls moves to a schema of its own.

The functions keep their identity: triggers, policies, defaults, domains and views that use them go on working.

Revision ID: 0017
Revises: 0016
"""

from __future__ import annotations

from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

PUBLIC = """
    {add_observer, adopt, attach, backlog, combine, combine_sql, create_export, create_queue, detach, drop_export,
     drop_in_portions, drop_observer, drop_queue, enqueue, grant_enqueue, grant_export, grant_handoff, grant_load,
     grant_monitor, grant_operate, grant_read, grant_replay, grant_work, granted_privileges, hand_over_runs,
     handoff_identify, hints_for, isolate, pause, pause_export, quarantine_drop, quarantine_retry, rebucket, regenerate,
     resume, resume_export, retire, revoke_right, right_privileges, values_tables, verify, wait}
"""
MOVE = """
do $$
declare
    _routine text;
begin
    for _routine in
        select p.oid::regprocedure::text
        from pg_proc p
        where p.pronamespace = '{source}'::regnamespace and p.proname <> all ('{stay}'::name[])
          and not exists (select from pgcombine.queue q where p.proname = q.queue || '_enqueue')
    loop
        execute format('alter routine %s set schema {target}', _routine);
    end loop;
end
$$
"""
# Revision 0016 reads the queues' views on its way back, so the functions must find each other.
CALL_EACH_OTHER = """
do $$
declare
    _routine regprocedure;
begin
    set local check_function_bodies = off;
    for _routine in
        select p.oid from pg_proc p where p.pronamespace = 'pgcombine'::regnamespace and p.prokind <> 'a'
    loop
        execute replace(pg_get_functiondef(_routine), 'pgcombine_internal.', 'pgcombine.');
    end loop;
end
$$
"""


def upgrade() -> None:
    op.execute("create schema if not exists pgcombine_internal")  # one is left if pgcombine was dropped by hand
    op.execute("comment on schema pgcombine_internal is 'Combine queues: what pgcombine''s own functions call.'")
    op.get_bind().exec_driver_sql(
        MOVE.format(source="pgcombine", target="pgcombine_internal", stay=PUBLIC),
        execution_options={"no_parameters": True},
    )


def downgrade() -> None:
    op.get_bind().exec_driver_sql(
        MOVE.format(source="pgcombine_internal", target="pgcombine", stay="{}"),
        execution_options={"no_parameters": True},
    )
    op.get_bind().exec_driver_sql(CALL_EACH_OTHER, execution_options={"no_parameters": True})
    op.execute("drop schema pgcombine_internal")
