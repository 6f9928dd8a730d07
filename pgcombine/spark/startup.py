"""Start a local Spark session that doesn't log to the console, and removes its files at the end.

:func:`session` finds Java and PostgreSQL's JDBC driver. By default the session uses this Python and its modules, the
address 127.0.0.1, UTC and ANSI SQL, and has no UI, no console progress and no log. Its files are in one scratch
directory, which is removed when the program ends. If the program is killed, the next program that starts a session
removes the directory. A session that is active already is used with its own settings.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import pkgutil
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgcombine.errors import ConfigError, pip_install
from pgcombine.spark.java import find_java, java_home
from pgcombine.spark.jdbc_driver import find_driver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PREFIX = "pgcombine-spark-"
_LOG4J = """\
rootLogger.level = {level}
rootLogger.appenderRef.stderr.ref = console
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = {level}
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{{HH:mm:ss}} %p %c{{1}}: %m%n
"""


def session(
    app_name: str = "pgcombine",
    *,
    master: str = "local[*]",
    log_level: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return the active Spark session, or a new one.

    The parameters are for a new session. ``log_level`` is the name of a Log4j level (default: ``PGCOMBINE_SPARK_LOG``,
    else ``OFF``). ``conf`` has settings that add to the defaults or replace them. Raises ConfigError if PySpark or Java
    is missing, if ``PGCOMBINE_JDBC_JAR`` names no file, or if the session doesn't start.
    """
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise ConfigError(f"PySpark is missing ({error}): {pip_install('spark')}") from error

    if (active := SparkSession.getActiveSession()) is not None:
        register(active)
        return active
    scratch = _scratch()
    builder = SparkSession.builder.appName(app_name).master(master)
    for key, value in {**_settings(scratch, log_level), **(conf or {})}.items():
        builder = builder.config(key, value)
    environment = {
        "JAVA_HOME": str(java_home(find_java(), scratch / "java")),
        "PYSPARK_PYTHON": sys.executable,
        **_search_path(),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    try:
        with _environment(environment):
            spark = builder.getOrCreate()
        register(spark)
        return spark
    except (PySparkException, OSError) as error:
        raise ConfigError(f"Spark doesn't start: {error}. PGCOMBINE_SPARK_LOG=INFO shows Spark's log") from error


def _settings(scratch: Path, log_level: str | None) -> dict[str, str]:
    """Return the default settings of a session whose files are in ``scratch``."""
    log4j = scratch / "log4j2.properties"
    log4j.write_text(_LOG4J.format(level=log_level or os.environ.get("PGCOMBINE_SPARK_LOG", "OFF")))
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": (
            f"-Dlog4j2.configurationFile={log4j.as_uri()} -Djava.io.tmpdir={scratch} -XX:-UsePerfData"
        ),
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.executorEnv.PYTHONSAFEPATH": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        # Spark's default, 200 partitions, is slow on one machine
        "spark.sql.shuffle.partitions": str(4 * (os.cpu_count() or 4)),
    }
    if jar := find_driver():
        settings["spark.jars"] = str(jar)
    return settings


def register(spark: SparkSession) -> None:
    """Register ``format("pgcombine")`` with a session in which Spark doesn't find it itself, for example in a checkout.

    Except over Spark Connect, this also makes the session the active one of the calling thread. Without that, Spark
    finds Python data sources only in the thread that started the session.
    """
    from pyspark.sql.utils import is_remote

    if not is_remote():
        jvm: Any = spark._jvm
        jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)
    if any(module.name == "pyspark_pgcombine" for module in pkgutil.iter_modules()):
        return
    from pgcombine.spark.discovery import DefaultSource

    spark.dataSource.register(DefaultSource)


def _stop(spark: SparkSession) -> None:
    """Stop the session, without a warning if Java is unreachable: Java ends with this process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the warning "unable to cleanly shutdown Spark JVM process"
        spark.stop()


def _search_path() -> dict[str, str]:
    """Return the environment variables with which Spark's Python processes import the same modules as this program.

    Without them these processes search the working directory first.
    """
    own = [] if sys.flags.safe_path else [os.path.abspath(sys.path[0])]
    given = os.environ.get("PYTHONPATH")
    return {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join([*own, *([given] if given else [])])}


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the block. Spark's launcher passes them to the Java machine and its tasks."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _scratch() -> Path:
    """Create a scratch directory, locked until this process ends. Remove those that killed programs left."""
    parent = Path(tempfile.gettempdir())
    for orphan in parent.glob(_PREFIX + "*"):
        _remove_orphan(orphan)
    directory = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    lock = os.open(directory / "lock", os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)

    def remove() -> None:
        from pyspark.sql import SparkSession

        if (active := SparkSession.getActiveSession()) is not None:
            _stop(active)
        shutil.rmtree(directory, ignore_errors=True)

    atexit.register(remove)
    return directory


def _remove_orphan(directory: Path) -> None:
    try:
        lock = os.open(directory / "lock", os.O_RDWR)
    except OSError:
        return  # the directory is another user's, or has no lock file yet
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return
    else:
        shutil.rmtree(directory, ignore_errors=True)
    finally:
        os.close(lock)
