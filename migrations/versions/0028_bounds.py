"""Going back drops the bounds of values, whose functions the older version doesn't have. Queues get them by regenerate.

Revision ID: 0028
Revises: 0027
"""

from __future__ import annotations

from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

DOWNGRADE = """
    do $$
    declare
        _table regclass;
        _name text;
    begin
        for _table, _name in
            select k.conrelid, k.conname
            from pg_constraint k
            where k.connamespace = 'pgcombine'::regnamespace and k.contype = 'c' and k.coninhcount = 0
              and k.conname ~ '^(update|value|packed_row)_has_at_most_(1|16)_megabytes?(_and_64_levels)?$'
        loop
            execute format('alter table %s drop constraint %I', _table, _name);
        end loop;
    end
    $$
"""


def upgrade() -> None:
    pass


def downgrade() -> None:
    op.get_bind().exec_driver_sql(DOWNGRADE, execution_options={"no_parameters": True})
