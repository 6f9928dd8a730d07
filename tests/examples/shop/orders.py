"""Orders, and how many units were sold of each product.

A product that sells well is one hot row in a table of counts; here an order only appends an update.
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
    """As :func:`place`."""
    session.add(Order(customer=customer, product=product, units=units))
    await session.flush()
    await SOLD.enqueue(session, [{"product": product, "units": units, "orders": 1}])
