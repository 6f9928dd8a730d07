"""The database that Spark writes to or reads: its address for psycopg, which tasks use, and for the JDBC driver.

The JDBC driver gets the password as a connection property, not in the URL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgcombine.database.connect import connect
from pgcombine.spark.jdbc_driver import DRIVER_CLASS, JDBC_DRIVER, has_driver
from pgcombine.spark.options import chosen_dsn

if TYPE_CHECKING:
    from psycopg import ConnectionInfo
    from pyspark.sql import SparkSession

SINKS = ("jdbc", "copy")
_FILES = ("service", "servicefile", "passfile")
# Parameters that tasks get only if the connection string has them. libpq sets sslcertmode by itself, but older versions
# of libpq don't know it; connect() sets application_name.
_AUTOMATIC = {"sslcertmode", "application_name"}
# parameters of libpq → the same parameters of the JDBC driver
_PROPERTIES = {
    "sslmode": "sslmode",
    "sslrootcert": "sslrootcert",
    "options": "options",
    "application_name": "ApplicationName",
}


@dataclass(frozen=True)
class Target:
    """A database that was reached, with the parameters by which tasks connect to it.

    ``url`` is None if the server was reached through a Unix socket, which the JDBC driver can't use.
    """

    conninfo: str = field(repr=False)
    url: str | None
    properties: dict[str, str] = field(repr=False)

    @classmethod
    def of(cls, dsn: str | None) -> Target:
        """Connect, and keep the parameters that libpq found, also in service files, .pgpass and the environment.

        Without ``dsn`` the environment names the database. Raises ConfigError if neither does, and ConnectError if the
        server can't be reached or refuses.
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
                name = parameters["hostaddr"]  # the user gave an address, so the name may be unresolvable
            host = f"[{name}]" if ":" in name else name
            url = None if socket else f"jdbc:postgresql://{host}:{info.port}/{quote(info.dbname, safe='')}"
            return cls(conninfo, url, properties)


def why_not_jdbc(spark: SparkSession, target: Target) -> str | None:
    """Return the reason why Spark's JDBC writer can't reach the target, with the remedy. None: no reason is known."""
    if target.url is None:
        return "the server was reached through a Unix socket, which JDBC can't use: give a host name"
    if not has_driver(spark):
        return (
            "no PostgreSQL JDBC driver was found, and none could be downloaded: set PGCOMBINE_JDBC_JAR, "
            "install Debian's libpostgresql-jdbc-java, or start Spark with "
            f"spark.jars.packages=org.postgresql:postgresql:{JDBC_DRIVER}"
        )
    return None


def _resolved(dsn: str, parameters: Mapping[str, str], info: ConnectionInfo) -> str:
    """Return a connection string with the parameters that libpq found on this machine.

    The machines on which tasks run may lack the service file and the password file, and have another environment.
    """
    given = conninfo_to_dict(dsn)
    found = {name: value for name, value in parameters.items() if name in given or name not in _AUTOMATIC}
    for name in _FILES:
        given.pop(name, None)
        found.pop(name, None)
    here = {"host": info.host, "port": str(info.port), "user": info.user, "dbname": info.dbname}
    secret = {"password": info.password} if info.password else {}
    merged: dict[str, Any] = {**given, **found, **here, **secret}
    return make_conninfo("", **merged)
