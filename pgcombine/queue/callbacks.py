"""Python functions that belong to a queue: observers of its changes, and combiners of its value columns.

They are registered here by name. They are declared in the database, too: an observer by
``pgcombine.add_observer(…, language => 'python')``, a combiner by a value column with the combiner ``python``. A pass
by a program that lacks a declared function is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from pgcombine.database.connect import Connection


class Change(NamedTuple):
    """A key with its value before and after a pass. None as a value means that there is none.

    A key is a scalar, or a tuple where the queue has several key columns. The same holds for a value.
    """

    key: Any
    old: Any
    new: Any


class ChangeStream(Protocol):
    """The changes of a pass. They are read in portions, and may be iterated several times."""

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
