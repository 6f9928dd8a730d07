"""Errors of Spark, reduced to the line that names the first cause."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from os import environ

from pgcombine import errors
from pgcombine.errors import InvalidUpdateError, PgCombineError

_OWN = re.compile(r"pgcombine\.errors\.(\w+): (.*?)(?: SQLSTATE: \w+)?$")

_UNFIT = {"22", "23", "54"}  # classes of SQLSTATEs: wrong data, violated constraints, exceeded limits


@contextmanager
def explained() -> Iterator[None]:
    """Raise PgCombineError in place of an error of PySpark or py4j. Its message names the first cause.

    Also raises PgCombineError in place of EOFError and ConnectionError, since these mean that Java has ended. If an
    error of pgcombine in a process of Spark is the cause, its class is raised, unless that class has a constructor of
    its own. If PostgreSQL refused a value that Spark's JDBC writer wrote, InvalidUpdateError is raised.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        line = reason(error)
        if unfit := _refused(error):
            raise InvalidUpdateError(f"a row doesn't fit the queue: {unfit}") from error
        if (
            (own := _OWN.search(line))
            and (kind := vars(errors).get(own[1]))
            and kind.__init__ is PgCombineError.__init__
        ):
            raise kind(own[2]) from error
        raise PgCombineError(
            f"Spark failed: {line} (in a session that pgcombine starts, PGCOMBINE_SPARK_LOG=ERROR shows more)"
        ) from error
    except (EOFError, ConnectionError) as error:  # from the socket of py4j's gateway
        raise PgCombineError(f"Java has ended ({error or type(error).__name__}): start a new Spark session") from error


@contextmanager
def brief() -> Iterator[None]:
    """Let Spark report an error of pgcombine by its message alone, without a traceback.

    An error sets an environment variable of the whole process. So use this only in Spark's Python processes.
    """
    try:
        yield
    except PgCombineError:
        environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise


def _refused(error: BaseException) -> str | None:
    """Return PostgreSQL's message if it refused a value of Spark's JDBC writer; else, and over Spark Connect, None."""
    cause, batch = getattr(error, "java_exception", None), False
    while cause is not None:
        name = cause.getClass().getName()
        batch = batch or name == "java.sql.BatchUpdateException"  # only raised by writes
        if batch and name == "org.postgresql.util.PSQLException" and cause.getSQLState()[:2] in _UNFIT:
            return " ".join(str(cause.getMessage()).removeprefix("ERROR: ").split())
        cause = cause.getCause()
    return None


def reason(error: BaseException) -> str:
    """Return the line of the error's text that names the first cause."""
    cause = getattr(error, "java_exception", None)
    message = str(error)
    while cause is not None:
        message = cause.getMessage() or cause.toString()
        cause = cause.getCause()
    lines = [line for line in message.split("\n\tat ")[0].splitlines() if line.strip()]
    frames = [number for number, line in enumerate(lines) if line.startswith("  File ")]
    if frames:  # the error follows the last frame of a Python traceback, and frames are indented
        lines = [line for line in lines[frames[-1] :] if not line.startswith(" ")]
    # after brief() there is no traceback, but Spark adds a line before the message
    return next(filter(_OWN.search, lines), lines[0]).strip() if lines else type(error).__name__
