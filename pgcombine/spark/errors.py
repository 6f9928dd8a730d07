"""Errors of Spark in one line: what a task or the Java machine died of, without the stack traces."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pgcombine.errors import PgCombineError


@contextmanager
def explained() -> Iterator[None]:
    """Raise PgCombineError with the first cause in place of what PySpark raises; that stays as ``__cause__``."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise PgCombineError(f"Spark failed: {reason(error)} (PGCOMBINE_SPARK_LOG=ERROR shows more)") from error
    except (EOFError, ConnectionError) as error:  # the gateway's socket
        raise PgCombineError(f"Spark's Java machine is gone ({error or type(error).__name__}): run again") from error


def reason(error: BaseException) -> str:
    """The line that says what went wrong first."""
    cause = getattr(error, "java_exception", None)
    message = str(error)
    while cause is not None:
        message = cause.getMessage() or cause.toString()
        cause = cause.getCause()
    lines = [line.strip() for line in message.split("\n\tat ")[0].splitlines() if line.strip()]
    if any(line.startswith("Traceback (most recent") for line in lines):
        return lines[-1]  # Python's own traceback ends with the error
    return lines[0] if lines else type(error).__name__
