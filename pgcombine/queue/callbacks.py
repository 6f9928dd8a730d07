"""Python observers of a queue's changes, and of what arrived in its passes.

A CombineQueue has observers by name. ``pgcombine.add_observer(…, language => 'python')`` declares them in the database,
too. The database refuses a pass by a program that lacks a declared observer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from pgcombine.database.connect import Connection


class Change(NamedTuple):
    """A key with its value before and after a pass. A value is None if the key has no value, or only nulls.

    A key is a scalar, or a tuple if the queue has several key columns. A value is a scalar, or a tuple if the queue has
    several value columns.
    """

    key: Any
    old: Any
    new: Any


class ChangeStream(Protocol):
    """The changes of a pass. An observer may iterate them several times. They are read in portions."""

    def __iter__(self) -> Iterator[Change]: ...

    def __len__(self) -> int: ...


class Arrival(NamedTuple):
    """A key with the updates of a pass, combined with each other but not with the old value.

    A key is a scalar, or a tuple if the queue has several key columns. A value is a scalar, or a tuple if the queue has
    several value columns.
    """

    key: Any
    value: Any


class ArrivalStream(Protocol):
    """What arrived in a pass. The arrivals are read in portions, and may be iterated several times."""

    def __iter__(self) -> Iterator[Arrival]: ...

    def __len__(self) -> int: ...


Observer = Callable[[Connection, ChangeStream], object]
ArrivalObserver = Callable[[Connection, ArrivalStream], object]


@dataclass(frozen=True)
class OfArrivals:
    """Marks an observer of arrivals among a queue's observers. The others are observers of changes."""

    function: ArrivalObserver


Observers = Mapping[str, Observer | OfArrivals]  # by name
NO_OBSERVERS: Observers = MappingProxyType({})
