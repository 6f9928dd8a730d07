"""Loads from Spark and the ids of their runs belong to the role that made them; how many loads a role may have.

A run id from before has no role: it counts for every role. A load that is under way gets the role that may write to its
stage. A token load under way has no stage, so it gets the role that upgrades: another role's fails and is run again.

Revision ID: 0013
Revises: 0012
"""

from __future__ import annotations

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

TABLES = ("spark_load", "spark_part", "spark_alive", "spark_run")
UPGRADE = (
    "alter table pgcombine.spark_load add column role text not null default current_user",
    """
    update pgcombine.spark_load l
    set role = coalesce((
        select min(pg_get_userbyid(a.grantee)::text)
        from pg_class c, aclexplode(c.relacl) a
        where c.relnamespace = 'pgcombine'::regnamespace and c.relname = 'spark_stage_' || l.number
          and a.grantee not in (0, c.relowner)), l.role)
    """,
    "comment on column pgcombine.spark_load.role is 'The role that began it, and that alone may go on with it.'",
    "alter table pgcombine.spark_run add column role text not null default ''",
    "alter table pgcombine.spark_run alter column role set default current_user",
    """
    comment on column pgcombine.spark_run.role is
        'The role whose run it is: other roles may use the same id. Empty: from before, it counts for every role.'
    """,
    "alter table pgcombine.spark_run drop constraint spark_run_pkey, add primary key (queue, role, run_id)",
    "drop index pgcombine.spark_run_stream",
    """
    create index spark_run_stream on pgcombine.spark_run (queue, role, stream, batch) where stream is not null
    """,
    """
    create table pgcombine.spark_limit (
        role  text primary key,
        loads integer not null check (loads >= 0)
    )
    """,
    """
    comment on table pgcombine.spark_limit is
        'How many loads from Spark a role may have under way. The row of the role '''' is for all that have none.'
    """,
    "insert into pgcombine.spark_limit (role, loads) values ('', 100)",
    # what a role may see and change of these is a matter of policies, which are not versioned (grants.sql)
    *[f"alter table pgcombine.{table} enable row level security" for table in TABLES],
)
DOWNGRADE = (
    """
    do $$
    declare
        _policy record;
    begin
        for _policy in
            select p.polname, p.polrelid::regclass as relation
            from pg_policy p join pg_class c on c.oid = p.polrelid
            where c.relnamespace = 'pgcombine'::regnamespace
        loop
            execute format('drop policy %I on %s', _policy.polname, _policy.relation);
        end loop;
    end
    $$
    """,
    *[f"alter table pgcombine.{table} disable row level security" for table in TABLES],
    *[f"revoke all on pgcombine.{table} from public" for table in TABLES],
    "grant select on pgcombine.spark_load, pgcombine.spark_run to public",
    "drop table pgcombine.spark_limit",
    """
    delete from pgcombine.spark_run r
    using pgcombine.spark_run other
    where other.queue = r.queue and other.run_id = r.run_id and other.role < r.role
    """,
    "alter table pgcombine.spark_run drop column role",  # its index and the key go with it
    "alter table pgcombine.spark_run add primary key (queue, run_id)",
    "create index spark_run_stream on pgcombine.spark_run (queue, stream, batch) where stream is not null",
    "alter table pgcombine.spark_load drop column role",
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})


def downgrade() -> None:
    for statement in DOWNGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})
