"""The baseline: the tables, types and indexes of the first release. ``0001_baseline.sql`` has their DDL.

Revision ID: 0001
Revises:
"""

from __future__ import annotations

from alembic import op

from pgcombine.database import sqlfiles

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    statements = sqlfiles.baseline().replace("{digest of this file}", sqlfiles.baseline_digest())
    op.get_bind().exec_driver_sql(statements, execution_options={"no_parameters": True})


def downgrade() -> None:
    """Do nothing: ``pgcombine.schema.downgrade`` drops both schemas after Alembic has written to its own table."""
