"""Orders.

Revision ID: 0001
Revises:
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "orders",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("customer", sa.String, nullable=False),
        sa.Column("product", sa.String, nullable=False),
        sa.Column("units", sa.Integer, nullable=False),
        sa.CheckConstraint("units > 0", name="units_are_positive"),
    )
    op.create_index("ix_orders_product", "orders", ["product"])


def downgrade() -> None:
    op.drop_table("orders")
