"""Passes that take too long: the bucket is passed over in slices of its keys.

A pass that the server cancels, as it does at the statement timeout, would take as long the next time. So the next
passes over the bucket take a slice each, and a slice that is cancelled is cut again. What passes is committed. Keys
are never quarantined for this: no error tells that one of them is at fault.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from pgcombine.database import Connection
from pgcombine.errors import InvalidDefinition, PassError, QueueNotFound
from pgcombine.functions import Functions
from pgcombine.model import Pass
from pgcombine.passes import run_pass

CANCELLED = "57014"
_PARTS = 8  # of what took too long; a power of two
_IN_VAIN = 3  # of the finest slices, nothing else between them: what keeps the bucket isn't its size
_FINEST = _PARTS**4 - 1  # a mask; what takes too long in so small a slice takes too long at any size


@dataclass
class _Left:
    """The slices to come as (mask, slice), the next one last.

    ``slow`` are those of the finest that took too long, ``in_vain`` of them since a slice has passed; ``given_up``: one
    of them took too long twice.
    """

    slices: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    slow: set[tuple[int, int]] = field(default_factory=set)
    in_vain: int = 0
    given_up: bool = False


class Slices:
    """The buckets that are passed over in slices; threads may share it, one bucket at a time each."""

    def __init__(self) -> None:
        self._left: dict[tuple[str, int], _Left] = {}

    def sliced(self, queue: str, bucket: int) -> bool:
        """Whether the next pass over the bucket takes a slice."""
        return (queue, bucket) in self._left

    def run_pass(self, connection: Connection, queue: str, bucket: int, functions: Functions | None) -> Pass | None:
        """:func:`~pgcombine.passes.run_pass` over the bucket, or over its next slice; raises the same.

        When all its slices have passed, the bucket's failure is forgotten.
        """
        left = self._left.get((queue, bucket))
        try:
            done = run_pass(connection, queue, bucket, functions, left.slices[-1] if left else None)
        except PassError as error:
            if error.sqlstate == CANCELLED:
                self._cut(queue, bucket)
            raise
        except (InvalidDefinition, QueueNotFound):
            self._left.pop((queue, bucket), None)
            raise
        if left and done is not None:
            left.slices.pop()
            left.in_vain = 0
            if not left.slices:
                del self._left[queue, bucket]
                if not left.given_up:
                    connection.execute("select pgcombine.forget_failure(%s, %s)", (queue, bucket))
        return done

    def _cut(self, queue: str, bucket: int) -> None:
        left = self._left.setdefault((queue, bucket), _Left())
        mask, part = left.slices.pop()
        if mask < _FINEST:
            parts = [(_PARTS * (mask + 1) - 1, part + i * (mask + 1)) for i in range(_PARTS)]
            random.shuffle(parts)
            left.slices += parts
            return
        left.in_vain += 1
        if (mask, part) in left.slow:
            left.given_up = True
        else:
            left.slow.add((mask, part))
            left.slices.insert(0, (mask, part))  # the others first
        if not left.slices or left.in_vain == _IN_VAIN:
            del self._left[queue, bucket]
