"""``Budget``: amounts by key, from which transactions take without waiting for each other (``sql/budget``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

from psycopg import sql

from pgcombine.database.caller import in_transaction as _in_transaction
from pgcombine.database.connect import Connection, dicts
from pgcombine.database.sqlfiles import query
from pgcombine.database.steps import Statement, Steps
from pgcombine.errors import InvalidDefinitionError
from pgcombine.queue.combine_queue import CombineQueue


class Budget:
    """A budget by name. The queue of the same name, :attr:`queue`, combines its changes.

    ``key`` has the key columns (``["show int"]``; a single one may be a string). The other arguments are those of
    ``pgcombine.create_budget``. Only :meth:`create` uses the arguments after the name. In the calls, a key is a scalar,
    or a tuple if there are several key columns. An amount is an int or a Decimal. The calls raise InvalidUpdateError
    for a key, an amount or a hold that isn't valid, and NotGrantedError or the driver's error for a missing right.
    """

    def __init__(
        self, name: str, *, key: Sequence[str] = (), amount: str = "bigint", chips: int = 16, buckets: int = 1
    ) -> None:
        self.name = name
        self.key = [key] if isinstance(key, str) else list(key)
        self.amount, self.chips, self.buckets = amount, chips, buckets

    def __repr__(self) -> str:
        return f"Budget({self.name!r})"

    @property
    def queue(self) -> CombineQueue:
        """The queue that combines the budget's changes."""
        return CombineQueue(self.name)

    @_in_transaction()
    def create(self, *, if_not_exists: bool = False) -> Steps[None]:
        """Create the budget. With ``if_not_exists`` the same budget may exist already.

        Raises QueueExistsError if the name is taken, and InvalidDefinitionError for an invalid definition.
        """
        yield Statement(
            "select pgcombine.create_budget(%s, %s, %s, chips => %s, buckets => %s, if_not_exists => %s)",
            (self.name, self.key, self.amount, self.chips, self.buckets, if_not_exists),
        )

    @_in_transaction()
    def add(self, key: Any, amount: int | Decimal) -> Steps[None]:
        """Add an amount to a key. Waits for nobody."""
        yield self._call("add", *_parts(key), amount)

    @_in_transaction()
    def take(self, key: Any, amount: int | Decimal, *, wait: bool = True) -> Steps[bool]:
        """Take an amount from a key. Returns False if the key hasn't got it.

        Waits only if transactions in progress decide. Without ``wait`` it then raises WaitTimeoutError.
        """
        ((taken,),) = yield self._call("take", *_parts(key), amount, wait)
        return bool(taken)

    @_in_transaction()
    def take_all(self, amounts: Mapping[Any, int | Decimal], *, wait: bool = True) -> Steps[bool]:
        """Take amounts from several keys, all or nothing. Returns and raises as :meth:`take`."""
        kind = Decimal if Decimal in map(type, amounts.values()) else int  # PostgreSQL's arrays have one type
        columns = zip(*map(_parts, amounts), strict=True)
        ((taken,),) = yield self._call("take_all", *map(list, columns), [*map(kind, amounts.values())], wait)
        return bool(taken)

    @_in_transaction()
    def hold(
        self, key: Any, amount: int | Decimal, hold: str, for_at_most: timedelta, *, wait: bool = True
    ) -> Steps[bool]:
        """Take an amount for some time, under the name ``hold``. Returns and raises as :meth:`take`.

        Also raises QueueExistsError if there is a hold of this name.
        """
        ((held,),) = yield self._call("hold", *_parts(key), amount, hold, for_at_most, wait)
        return bool(held)

    @_in_transaction()
    def settle(self, hold: str, amount: int | Decimal = 0) -> Steps[bool]:
        """End a hold: take an amount of it, and give the rest back. Returns False if the hold has ended already."""
        ((ended,),) = yield self._call("settle", hold, amount)
        return bool(ended)

    @_in_transaction()
    def totals(self) -> Steps[dict[str, Any]]:
        """Return what all keys have together: ``keys`` (their number), ``available`` and ``held``."""
        view = sql.Identifier("pgcombine", self.name)
        select = sql.SQL("select count(*), coalesce(sum(available), 0), coalesce(sum(held), 0) from {}")
        ((keys, *sums),) = yield Statement(select.format(view))
        available, held = (int(number) if number.as_tuple().exponent == 0 else number for number in sums)
        return {"keys": keys, "available": available, "held": held}

    @_in_transaction()
    def verify(self) -> Steps[list[str]]:
        """Compare the budget with its queue, and return the differences, one sentence each."""
        found = yield Statement("select problem from pgcombine.verify_budget(%s)", (self.name,))
        return [str(problem) for (problem,) in found]

    @_in_transaction(latest=True)
    def drop(self, *, force: bool = False) -> Steps[None]:
        """Drop the budget with its queue.

        Without ``force``, raises QueueNotEmptyError if amounts are held, updates are pending, or something else uses
        the queue, such as an export.
        """
        yield Statement("select pgcombine.drop_budget(%s, force => %s)", (self.name, force))

    def _call(self, function: str, *arguments: Any) -> Statement:
        name = sql.Identifier("pgcombine", f"{self.name}_{function}")
        return Statement(
            sql.SQL("select {}({})").format(name, sql.SQL(", ").join([sql.Placeholder()] * len(arguments))), arguments
        )


def budgets(connection: Connection, name: str | None = None) -> list[dict[str, Any]]:
    """Return the definition of each budget, or only of the budget ``name``, as a dict.

    Raises InvalidDefinitionError if there is no budget of that name.
    """
    found = dicts(connection, query("budgets"), [name, name])
    if name is not None and not found:
        raise InvalidDefinitionError(f'there is no budget "{name}" (pgcombine budget ls lists them)', queue=name)
    return found


def _parts(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)
