"""Rows of attached tables are under row security: the owner of a table may record that it is attached.

Revision ID: 0026
Revises: 0025
"""

from __future__ import annotations

from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("alter table pgcombine.attachment enable row level security")


def downgrade() -> None:
    op.execute("drop trigger if exists pgcombine_attached on pgcombine.attachment")
    for policy in ("seen", "kept"):
        op.execute(f"drop policy if exists {policy} on pgcombine.attachment")
    op.execute("alter table pgcombine.attachment disable row level security")
    op.execute("revoke all on pgcombine.attachment from public")
    op.execute("grant select on pgcombine.attachment to public")
