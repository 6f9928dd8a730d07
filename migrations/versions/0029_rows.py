"""A row of the updates is one update.

Revision ID: 0029
Revises: 0028
"""

from __future__ import annotations

from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("alter table pgcombine.queue drop column packs")


def downgrade() -> None:
    op.execute("alter table pgcombine.queue add column packs boolean not null default false")
