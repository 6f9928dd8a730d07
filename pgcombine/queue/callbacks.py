"""Functions in Python that belong to a queue: observers of its changes, and combiners of value columns.

They are registered here by name and declared in the database (``pgcombine.add_observer(…, language => 'python')``,
a value column with the combiner ``python``): a pass by a program that lacks one is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from pgcombine.database.connect import Connection


class Change(NamedTuple):
    """A key's value before and after a pass; None: there was, or is, none.

    A key is a scalar, or a tuple where the queue has several key columns; so is a value.
    """

    key: Any
    old: Any
    new: Any


class ChangeStream(Protocol):
    """The changes of a pass, read in portions as they are iterated, as often as wanted."""

    def __iter__(self) -> Iterator[Change]: ...

    def __len__(self) -> int: ...


Observer = Callable[[Connection, ChangeStream], object]
Combiner = Callable[[Any, Iterator[Any]], Any]


@dataclass
class Functions:
    """The Python functions of one queue: observers by name, combiners by value column."""

    observers: dict[str, Observer] = field(default_factory=dict)
    combiners: dict[str, Combiner] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.observers or self.combiners)
