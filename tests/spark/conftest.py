"""Fixtures: a Spark session for the tests of this folder, the command phrasecount in this process, and the sinks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.phrases import Counts
from typer.testing import CliRunner

from pgcombine.cli.app import app
from pgcombine.spark import write_jdbc
from pgcombine.spark.errors import explained
from pgcombine.spark.startup import session


@pytest.fixture(scope="session")
def spark(own_environment: Path) -> Iterator[Any]:
    spark = session("tests", master="local[2,4]", conf={"spark.sql.shuffle.partitions": "3"})
    yield spark
    spark.stop()


@dataclass
class Answer:
    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> dict[str, Any]:
        assert self.code == 0, self.stderr
        data: dict[str, Any] = json.loads(self.stdout)
        return data


Run = Callable[..., Answer]


@pytest.fixture
def run(spark: Any, dsn: str) -> Run:
    """Returns a function that runs ``pgcombine phrasecount ARGS --json`` in this process, on the test's database."""

    def run(*args: object) -> Answer:
        result = CliRunner().invoke(app, ["phrasecount", *map(str, args), "--json", "--dsn", dsn])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Answer(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def values(conn: psycopg.Connection) -> Callable[[], Counts]:
    def values() -> Counts:
        rows = conn.execute("select phrase, docs, total from pgcombine.phrases_values").fetchall()
        return {phrase: (docs, total) for phrase, docs, total in rows}

    return values


Write = Callable[..., None]


@pytest.fixture
def write(spark: Any, dsn: str) -> Write:
    """Returns a function that writes a DataFrame into a queue of the test's database, by the sink ``jdbc`` or ``copy``.

    ``options`` are options of the sink, by the sink's names.
    """

    def write(sink: str, frame: Any, *, queue: str = "wc", run_id: str | None = None, **options: Any) -> None:
        if sink == "jdbc":
            write_jdbc(frame, queue, dsn, run_id, **options)
            return
        named = {"queue": queue, "dsn": dsn, **({"runId": run_id} if run_id else {}), **options}
        with explained():
            frame.write.format("pgcombine").options(**named).mode("append").save()

    return write
