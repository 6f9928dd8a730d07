"""Whether a task has got all of its rows. Arrow takes a stream that breaks off between two batches for one that ends.

So where an executor dies, its Python process may live long enough to take what it has got for the whole part. Staged,
that is one more attempt that nobody reports. A part that is written straight into the queue must not be committed then.
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
    """The batches; LoadError after the last one if the executor is gone, or if that can't be seen.

    After the last batch Spark sends the end of its own protocol; what broke off has nothing more.
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
    """What the worker's program reads from: it is called with ``infile``, and all that runs here below it."""
    frame: FrameType | None = sys._getframe()
    found = None
    while frame is not None:
        source = frame.f_locals.get("infile")
        if hasattr(source, "peek"):
            found = source
        frame = frame.f_back
    return found
