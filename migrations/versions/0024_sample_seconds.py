"""How long it took to find a queue's figures, so that looks for monitoring take a bounded share of a core.

Revision ID: 0024
Revises: 0023
"""

from __future__ import annotations

from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("alter table pgcombine.sample add column seconds double precision not null default 0")
    op.execute("comment on column pgcombine.sample.seconds is 'How long it took to find these figures.'")


def downgrade() -> None:
    op.execute("alter table pgcombine.sample drop column seconds")
