"""The Spark session of a program."""

from __future__ import annotations

import logging
import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pgcombine.spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def borrowed_session(app_name: str) -> Iterator[SparkSession]:
    """Yield the existing session, which stays as it is, or a new one, which is stopped at the end.

    During the block of a new session, Ctrl-C raises KeyboardInterrupt as in any Python program, without PySpark's log
    lines.
    """
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    try:
        active = SparkSession.active()  # also a session that another thread made, unlike getActiveSession
    except PySparkRuntimeError:
        pass
    else:
        yield active
        return
    interrupt = signal.getsignal(signal.SIGINT)
    spark = session(app_name)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, interrupt)  # PySpark's handler calls Java in the middle of another call
    silent = logging.NullHandler()
    logging.getLogger().addHandler(silent)  # py4j logs an interrupted call through the root logger
    try:
        yield spark
    finally:
        logging.getLogger().removeHandler(silent)
        with warnings.catch_warnings():  # an interrupted call may have left Java unreachable: it ends with this process
            warnings.simplefilter("ignore", RuntimeWarning)
            spark.stop()
