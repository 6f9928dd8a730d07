"""Whether a Spark task has got all of its rows.

Arrow takes a stream that breaks off between two batches for a whole one. If an executor dies, its Python process may
live on and take the rows so far for the whole part. When rows are staged, that is an attempt which Spark doesn't report
as successful, and it does no harm. A part that is written into the queue directly must not be committed then: LoadError
is raised.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

from pgcombine.errors import LoadError

if TYPE_CHECKING:
    import pyarrow as pa


def whole(batches: Iterator[pa.RecordBatch], queue: str) -> Iterator[pa.RecordBatch]:
    """Yield the batches. Raises LoadError after the last one if the executor is gone, or if that can't be checked.

    After the last batch Spark sends the end of its own protocol. A stream that broke off has no more bytes.
    """
    yield from batches
    source = _from_executor()
    if source is None:
        raise LoadError('the end of a part can\'t be told with this version of PySpark: use "mode=staged"', queue=queue)
    try:
        ended = bool(source.peek(1))
    except OSError:
        ended = False
    if not ended:
        raise LoadError("the executor was gone before it had handed on all rows of a part", queue=queue)


def _from_executor() -> Any:
    """Return the stream that PySpark's worker reads: the variable ``infile`` of the outermost function that has one."""
    frame: FrameType | None = sys._getframe()
    found = None
    while frame is not None:
        source = frame.f_locals.get("infile")
        if hasattr(source, "peek"):
            found = source
        frame = frame.f_back
    return found
