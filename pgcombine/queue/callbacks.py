"""Python observers of a queue's changes, and of what arrived in its passes.

A CombineQueue has observers by name. ``pgcombine.add_observer(…, language => 'python')`` declares them in the database,
too. The database refuses a pass by a program that lacks a declared observer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Protocol, SupportsIndex, overload

from pgcombine.database.connect import Connection


class Columns(tuple[Any, ...]):
    """A key or a value of several columns: a tuple whose parts can also be read by name.

    For example, ``value["n"]`` or ``value.n``. A name that isn't an identifier, or that is a method of tuples, such as
    ``count``, only works in brackets.
    """

    __slots__ = ()
    names: ClassVar[tuple[str, ...]] = ()

    @overload
    def __getitem__(self, place: SupportsIndex | str) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Any, ...]: ...
    def __getitem__(self, place: SupportsIndex | slice | str) -> Any:
        if not isinstance(place, str):
            return super().__getitem__(place)
        if place not in type(self).names:
            raise KeyError(f"there is no column {place!r}; columns: {', '.join(type(self).names)}")
        return super().__getitem__(type(self).names.index(place))

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __reduce__(self) -> Any:
        return tuple, (tuple(self),)

    @staticmethod
    def named(names: Sequence[str]) -> type[Columns]:
        """Return the class for columns of these names."""
        return type("Columns", (Columns,), {"__slots__": (), "names": tuple(names)})


class Change(NamedTuple):
    """A key with its value before and after a pass. A value is None if the key has no value, or only nulls.

    A key is a scalar, or if the queue has several key columns, a tuple whose parts can also be read by the column's
    name: ``change.key["day"]`` or ``change.key.day``. The same holds for a value and the value columns. A name that
    isn't an identifier, or that is a method of tuples, such as ``count``, only works in brackets.
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

    The key and the value have the same forms as in a :class:`Change`.
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
