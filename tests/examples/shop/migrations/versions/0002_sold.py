"""Units sold of each product.

Revision ID: 0002
Revises: 0001
"""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_combine_queue(
        "sold",
        key=["product text"],
        value=["units bigint sum", "orders bigint sum"],
        delete_when="units = 0 and orders = 0",
        buckets=4,
    )


def downgrade() -> None:
    op.drop_combine_queue("sold", force=True)
