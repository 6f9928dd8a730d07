"""Rows that passes, operators and export workers write are theirs whose right on the queue says so: by policies.

The policies, and which columns may be written, are not versioned (grants.sql).

Revision ID: 0015
Revises: 0014
"""

from __future__ import annotations

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

TABLES = (
    *("queue", "bucket", "failure", "quarantined_key"),
    *("export", "export_bucket", "export_quarantine", "destination_state"),
)
# What a role can make of rows of its own queue must not break what reads or counts them for all queues.
CHECKS = (
    ("bucket", "moves between 0 and 4000000000000000000 and isfinite(since)"),
    ("failure", "attempts between 0 and 2000000 and isfinite(since) and isfinite(last) and isfinite(retry_at)"),
    (
        "quarantined_key",
        "updates between -1 and 1000000000000000 and attempts between 0 and 2000000 and isfinite(since)",
    ),
    ("export_bucket", "delivered between 0 and 4000000000000000000 and isfinite(delivered_at)"),
    ("destination_state", "ticket between 0 and 4000000000000000000 and failures between 0 and 2000000000"),
    ("destination_state", "isfinite(retry_at) and isfinite(since)"),
)
UPGRADE = [
    # everybody saw these columns; from now on the view shows each reader its own rows
    """
    do $$
    begin
        if to_regclass('pgcombine.quarantine') is not null then
            revoke select (queue, updates) on pgcombine.quarantine from public;
        end if;
    end
    $$
    """,
    "revoke select (queue) on pgcombine.failure from public",
    *[f"alter table pgcombine.{table} enable row level security" for table in TABLES],
    *[
        f"alter table pgcombine.{table} add constraint {table}_sane{i} check ({sane})"
        for i, (table, sane) in enumerate(CHECKS)
    ],
    """
    create table pgcombine.granted_right (
        "right" text not null,
        role    name not null,
        subject text not null,
        primary key (role, "right", subject)
    )
    """,
    """
    comment on table pgcombine.granted_right is
        'What was granted by a function grant_…, on a queue or an export, for revoke_right. It grants nothing itself.'
    """,
]
DOWNGRADE = [
    """
    do $$
    declare
        _policy record;
    begin
        for _policy in
            select p.polname, p.polrelid::regclass as relation
            from pg_policy p join pg_class c on c.oid = p.polrelid
            where c.relnamespace = 'pgcombine'::regnamespace and c.relname not like 'spark\\_%'
        loop
            execute format('drop policy %I on %s', _policy.polname, _policy.relation);
        end loop;
    end
    $$
    """,
    *[f"alter table pgcombine.{table} disable row level security" for table in TABLES],
    *[f"revoke all on pgcombine.{table} from public" for table in TABLES],
    "drop view if exists pgcombine.every_queue, pgcombine.quarantine, pgcombine.status, pgcombine.export_status",
    "drop table pgcombine.granted_right",
    *[f"alter table pgcombine.{table} drop constraint {table}_sane{i}" for i, (table, _) in enumerate(CHECKS)],
    "grant select on pgcombine.queue, pgcombine.bucket to public",
    "grant select (queue) on pgcombine.quarantined_key, pgcombine.failure to public",
]


def upgrade() -> None:
    for statement in UPGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})


def downgrade() -> None:
    for statement in DOWNGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})
