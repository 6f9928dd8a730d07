"""A Spark session for a block: the existing one, or a new one."""

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

# Short programs are faster if Java's second compiler doesn't run. The rest limits the memory.
_FRUGAL = {
    "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmn32m "
    "-XX:MinHeapFreeRatio=10 -XX:MaxHeapFreeRatio=20",
    "spark.driver.memory": "512m",
    "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL": "system",
}


@contextmanager
def borrowed_session(app_name: str) -> Iterator[SparkSession]:
    """Yield the existing session, which isn't stopped at the end, or a new one, which is.

    During the block of a new session, Ctrl-C raises KeyboardInterrupt as it did before, without PySpark's log lines.
    """
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    try:
        active = SparkSession.active()  # finds a session of another thread, too; getActiveSession doesn't
    except PySparkRuntimeError:
        pass
    else:
        yield active
        return
    interrupt = signal.getsignal(signal.SIGINT)
    spark = session(app_name, conf=_FRUGAL)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, interrupt)  # PySpark's handler may call Java in the middle of another call
    silent = logging.NullHandler()
    logging.getLogger().addHandler(silent)  # py4j logs an interrupted call through the root logger
    try:
        yield spark
    finally:
        logging.getLogger().removeHandler(silent)
        # after an interrupted call, stop() may be unable to reach Java; the Java process then ends with this process
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            spark.stop()
