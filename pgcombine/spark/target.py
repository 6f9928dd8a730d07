"""Where Spark writes: one database, as psycopg in the tasks and as the JDBC driver name it.

The password travels as a connection property, never in a URL or in a plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgcombine.database.connect import connect
from pgcombine.errors import ConfigError
from pgcombine.spark.driver import DRIVER_CLASS, VERSION, has_driver
from pgcombine.spark.options import chosen_dsn

if TYPE_CHECKING:
    from psycopg import ConnectionInfo
    from pyspark.sql import SparkSession

SINKS = ("jdbc", "copy")
_FILES = ("service", "servicefile", "passfile")
_AUTOMATIC = {"sslcertmode", "application_name"}  # libpq sets it, older ones don't know it; connect() sets it
# libpq's parameters that the JDBC driver knows by the same or another name
_PROPERTIES = {
    "sslmode": "sslmode",
    "sslrootcert": "sslrootcert",
    "options": "options",
    "application_name": "ApplicationName",
}


@dataclass(frozen=True)
class Target:
    """A database that was reached: how tasks connect to it.

    ``url`` is None where the server was reached through a Unix socket, which the JDBC driver can't use.
    """

    conninfo: str = field(repr=False)
    url: str | None
    properties: dict[str, str] = field(repr=False)

    @classmethod
    def of(cls, dsn: str | None) -> Target:
        """Connect once and note what libpq found (service files, .pgpass, several hosts, environment).

        Without ``dsn`` the environment names the database. Raises ConfigError when it doesn't, or when the server
        doesn't answer.
        """
        dsn = chosen_dsn(dsn)
        with connect(dsn) as connection:
            info = connection.info
            parameters = info.get_parameters()
            conninfo = _resolved(dsn, parameters, info)
            properties = {"user": info.user, "driver": DRIVER_CLASS}
            if info.password:
                properties["password"] = info.password
            for libpq, jdbc in _PROPERTIES.items():
                if value := parameters.get(libpq):
                    properties[jdbc] = value
            socket = not info.host or info.host.startswith(("/", "@"))
            name = info.host
            if parameters.get("hostaddr") and parameters.get("sslmode") != "verify-full":
                name = parameters["hostaddr"]  # which is given since the name can't be resolved
            host = f"[{name}]" if ":" in name else name
            url = None if socket else f"jdbc:postgresql://{host}:{info.port}/{_quoted(info.dbname)}"
            return cls(conninfo, url, properties)


def choose_sink(spark: SparkSession, target: Target, wanted: str | None) -> tuple[str, str]:
    """The sink to use, ``jdbc`` or ``copy``, and why.

    Without a wish it is JDBC where that can work. Raises ConfigError if ``wanted`` can't work.
    """
    if wanted == "copy":
        return "copy", "as asked for"
    missing = why_not_jdbc(spark, target)
    if missing is None:
        return "jdbc", "as asked for" if wanted else "its driver is there"
    if wanted == "jdbc":
        raise ConfigError(f"--sink jdbc can't work: {missing}")
    return "copy", missing


def why_not_jdbc(spark: SparkSession, target: Target) -> str | None:
    """What keeps Spark's JDBC writer from reaching the target, and what to do; None: nothing that is known here."""
    if target.url is None:
        return "the server was reached through a Unix socket, which JDBC can't use: give a host name"
    if not has_driver(spark):
        return (
            "no PostgreSQL JDBC driver was found or could be resolved: set PGCOMBINE_JDBC_JAR, "
            "install Debian's libpostgresql-jdbc-java, or start Spark with "
            f"spark.jars.packages=org.postgresql:postgresql:{VERSION}"
        )
    return None


def _resolved(dsn: str, parameters: Mapping[str, str], info: ConnectionInfo) -> str:
    """A connection string that says all that was found here: where tasks run, there may be no service file, no password
    file and another environment."""
    given = conninfo_to_dict(dsn)
    found = {name: value for name, value in parameters.items() if name in given or name not in _AUTOMATIC}
    for name in _FILES:
        given.pop(name, None)
        found.pop(name, None)
    here = {"host": info.host, "port": str(info.port), "user": info.user, "dbname": info.dbname}
    secret = {"password": info.password} if info.password else {}
    merged: dict[str, Any] = {**given, **found, **here, **secret}
    return make_conninfo("", **merged)


def _quoted(name: str) -> str:
    from urllib.parse import quote

    return quote(name, safe="")
