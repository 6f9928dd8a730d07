"""The shop's tables."""

from __future__ import annotations

from sqlalchemy import CheckConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    """The base class of all models."""


class Order(Base):
    """A customer's order of some units of a product."""

    __tablename__ = "orders"
    __table_args__ = (CheckConstraint("units > 0", name="units_are_positive"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    customer: Mapped[str]
    product: Mapped[str] = mapped_column(index=True)
    units: Mapped[int]
