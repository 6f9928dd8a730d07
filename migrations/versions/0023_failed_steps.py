"""A step of the search for expired keys that failed is recorded apart from failures of passes.

Revision ID: 0023
Revises: 0022
"""

from __future__ import annotations

from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

UPGRADE = (
    # Writers lock a queue's updates and then the catalog. Passes lock the catalog and then the updates, which they only
    # read. So that none of them and the upgrade wait for each other, writers are stopped first.
    """
    do $$
    declare
        _queue text;
    begin
        for _queue in select queue from pgcombine.queue order by queue loop
            execute format('lock table only pgcombine.%I in share row exclusive mode', _queue || '_updates');
        end loop;
        lock table pgcombine.queue, pgcombine.bucket, pgcombine.retention in access exclusive mode;
    end
    $$
    """,
    """
    alter table pgcombine.retention
        add column sqlstate text,
        add column error text,
        add column failed_at timestamptz,
        add column failed_page bigint
    """,
    """
    comment on column pgcombine.retention.error is
        'Why expired keys of 1024 pages from failed_page on weren''t removed; null: nothing failed.'
    """,
    """
    insert into pgcombine.retention as r (queue, bucket, page, due, sqlstate, error, failed_at, failed_page)
    select f.queue, f.bucket, 0, '-infinity', f.sqlstate, substr(f.error, length('removing expired keys: ') + 1),
           f.last, 0
    from pgcombine.failure f where f.error like 'removing expired keys: %'
    on conflict on constraint retention_pkey do update
    set sqlstate = excluded.sqlstate, error = excluded.error, failed_at = excluded.failed_at, failed_page = r.page
    """,
    "delete from pgcombine.failure where error like 'removing expired keys: %'",
)
DOWNGRADE = (
    "alter table pgcombine.retention drop column sqlstate, drop column error, drop column failed_at, "
    "drop column failed_page",
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})


def downgrade() -> None:
    for statement in DOWNGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})
