"""Places orders, and counts the units sold of each product.

With a table of counts, all orders of a popular product would lock the same row. Here each order
appends an update to a queue instead.
"""

from __future__ import annotations

from models import Order
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

from pgcombine import CombineQueue

SOLD = CombineQueue("sold")


def place(session: Session, customer: str, product: str, units: int) -> None:
    """Add the order and count its units in the session's transaction."""
    session.add(Order(customer=customer, product=product, units=units))
    session.flush()
    SOLD.enqueue(session, [{"product": product, "units": units, "orders": 1}])


async def place_async(session: AsyncSession, customer: str, product: str, units: int) -> None:
    """Do the same as :func:`place` in an asynchronous session."""
    session.add(Order(customer=customer, product=product, units=units))
    await session.flush()
    await SOLD.enqueue(session, [{"product": product, "units": units, "orders": 1}])
