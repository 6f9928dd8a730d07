"""Find PostgreSQL's JDBC driver, which Spark's JDBC writer needs.

If ``PGCOMBINE_JDBC_JAR`` names a file, that is the driver. Otherwise these places are searched in order: PySpark's
``jars`` directory, the directory of Debian's package, the user's cache. If none of them has the driver, Ivy, which
comes with Spark, downloads it into the cache. The download may take :data:`RESOLVE_SECONDS` at most. After a failure no
other download is tried for an hour.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from pgcombine.errors import ConfigError
from pgcombine.spark.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JDBC_DRIVER = "42.7.13"  # the version of org.postgresql:postgresql
DRIVER_CLASS = "org.postgresql.Driver"
RESOLVE_SECONDS = 20
_DEBIAN = Path("/usr/share/java/postgresql.jar")


def find_driver(*, resolve: bool = True) -> Path | None:
    """Return the path of the driver's jar file, or None if none is found and the download fails.

    With ``resolve=False`` nothing is downloaded.

    Raises ConfigError if ``PGCOMBINE_JDBC_JAR`` doesn't name a file, or if there is no Java for the download.
    """
    if named := os.environ.get("PGCOMBINE_JDBC_JAR"):
        if not Path(named).is_file():
            raise ConfigError(
                f"PGCOMBINE_JDBC_JAR names {named!r}, which is no file: name PostgreSQL's JDBC jar, or unset it"
            )
        return Path(named)
    cached = _cache() / f"postgresql-{JDBC_DRIVER}.jar"
    for jar in [*sorted(_spark_jars().glob("postgresql-*.jar")), _DEBIAN, cached]:
        if jar.is_file():
            return jar
    return _resolve(cached) if resolve else None


def has_driver(spark: SparkSession) -> bool:
    """Whether the session's Java machine can load the driver. Over Spark Connect this returns True without a check."""
    from py4j.protocol import Py4JError
    from pyspark.sql.utils import is_remote

    if is_remote():
        return True  # if the server has no driver, the write fails there
    jvm = spark._jvm
    if jvm is None:
        return False
    try:
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(DRIVER_CLASS)
    except Py4JError:
        return False
    return True


def _resolve(jar: Path) -> Path | None:
    refused = jar.with_suffix(".unreachable")
    if refused.exists() and time.time() - refused.stat().st_mtime < 3600:
        return None
    jar.parent.mkdir(parents=True, exist_ok=True)
    work = jar.parent / f"ivy-{os.getpid()}"
    jars = [jar for name in ("ivy-*.jar", "commons-cli-*.jar") for jar in _spark_jars().glob(name)]
    command = [
        str(find_java()),
        *("-cp", os.pathsep.join(map(str, jars))),
        "org.apache.ivy.Main",
        *("-cache", str(work)),
        *("-dependency", "org.postgresql", "postgresql", JDBC_DRIVER),
        *("-confs", "default"),
        *("-retrieve", f"{work}/[artifact]-[revision].[ext]"),
        "-notransitive",
    ]
    try:
        subprocess.run(command, capture_output=True, timeout=RESOLVE_SECONDS, check=True)
        (work / jar.name).replace(jar)  # atomic, since two programs may download the driver at once
    except (OSError, subprocess.SubprocessError):
        refused.touch()
        return None
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return jar


def _spark_jars() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent / "jars"


def _cache() -> Path:
    return Path(platformdirs.user_cache_dir("pgcombine", appauthor=False))
