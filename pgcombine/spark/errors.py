"""Errors of Spark in one line: what a task or the Java machine died of, without the stack traces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pgcombine import errors
from pgcombine.errors import PgCombineError

_OWN = re.compile(r"pgcombine\.errors\.(\w+): (.*)")


@contextmanager
def explained() -> Iterator[None]:
    """Raise PgCombineError with the first cause in place of what PySpark raises; that stays as ``__cause__``.

    What pgcombine raised in a task, or in the process that Spark plans a source in, is of its class here, too.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        line = reason(error)
        if (
            (own := _OWN.fullmatch(line))
            and (kind := vars(errors).get(own[1]))
            and kind.__init__ is PgCombineError.__init__
        ):
            raise kind(own[2]) from error
        raise PgCombineError(f"Spark failed: {line} (PGCOMBINE_SPARK_LOG=ERROR shows more)") from error
    except (EOFError, ConnectionError) as error:  # the gateway's socket
        raise PgCombineError(f"Spark's Java machine is gone ({error or type(error).__name__}): run again") from error


def reason(error: BaseException) -> str:
    """The line that says what went wrong first."""
    cause = getattr(error, "java_exception", None)
    message = str(error)
    while cause is not None:
        message = cause.getMessage() or cause.toString()
        cause = cause.getCause()
    lines = [line for line in message.split("\n\tat ")[0].splitlines() if line.strip()]
    frames = [number for number, line in enumerate(lines) if line.startswith("  File ")]
    if frames:  # a Python traceback: the error follows its last, indented, frame
        lines = [line for line in lines[frames[-1] :] if not line.startswith(" ")]
    return lines[0].strip() if lines else type(error).__name__
