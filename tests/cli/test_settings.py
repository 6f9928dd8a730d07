"""The commands give the same results whatever the database and the environment set for sessions."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from support import run_cli
from support.servers import Server, embedded_only, with_database
from support.settings import all_but, supported

pytestmark = embedded_only

SHORT = "80ms"  # shorter than a transaction of an upgrade or of a backfill
TIMEOUTS = ("statement_timeout", "transaction_timeout", "idle_in_transaction_session_timeout", "idle_session_timeout")
CASES: dict[str, tuple[Mapping[str, str], Mapping[str, str]]] = {  # settings of the database, and the environment
    "formats": (
        all_but("transactions", "repeatable read", "parallel", "plans", "other plans"),
        {"PGCLIENTENCODING": "LATIN1", "LC_ALL": "C"},
    ),
    "transactions": (
        {"default_transaction_isolation": "serializable", "default_transaction_deferrable": "on"}
        | dict.fromkeys(TIMEOUTS, SHORT)
        | {"client_encoding": "LATIN1"},
        {"PGTZ": "Asia/Kathmandu", "PGDATESTYLE": "SQL, DMY"},
    ),
}
QUEUE = (
    *("--key", "w text", "--key", "at timestamp", "--key", "b bytea", "--value", "n bigint sum"),
    *("--value", "f double precision max", "--value", "i interval sum", "--value", "a text[] array_union"),
    *("--value", "l text max"),
    *("--expire-when", r"n = 7 and l is distinct from 'a\b'", "--buckets", "1"),
)
ROWS = [
    {"w": "ü\\", "at": "2026-01-02T03:04:05", "b": "\\x00ff", "n": 1, "f": 1e22 / 3, "i": "1 day -02:00:00"},
    {
        "w": "a\\b",
        "at": "0044-03-15 12:00:00 BC",
        "b": "\\x",
        "n": 0,
        "l": "a\\b",
        "f": 0.1,
        "a": ["NULL", None, 'q"', "ä,b"],
    },
    {"w": "x", "at": "infinity", "b": "\\x5c", "n": 7, "f": "Infinity", "i": "-1 year 3 days 00:00:01.5"},
]
SOURCE = """
create table public.src (k text, t timestamptz, x bigint);
insert into public.src select 'k' || i % 50 || '\\', timestamptz '2026-01-01 00:00Z' + i * interval '1 minute', i
from generate_series(1, 20000) i;
"""


class Run:
    """The commands of a flow, and what they print."""

    def __init__(self, dsn: str, directory: Path, env: Mapping[str, str]) -> None:
        self.dsn = dsn
        self.directory = directory
        self.env = os.environ | env
        self.told: list[tuple[str, int, str]] = []

    def __call__(self, *command: str, told: bool = True) -> subprocess.CompletedProcess[str]:
        done = run_cli(*command, "--dsn", self.dsn, env=self.env)
        assert "Traceback" not in done.stderr, (command, done.stderr)
        if told:
            printed = (done.stdout or done.stderr).replace(str(self.directory), "")
            self.told.append((" ".join(command).replace(str(self.directory), ""), done.returncode, printed))
        return done

    def rows(self, *command: str) -> None:
        done = self(*command, told=False)
        self.told.append((" ".join(command), done.returncode, "\n".join(sorted(done.stdout.splitlines()))))

    def flow(self) -> list[tuple[str, int, str]]:
        updates, values = self.directory / "updates.jsonl", self.directory / "values.csv"
        updates.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
        assert self("db", "upgrade", told=False).returncode == 0
        for queue in ("q", "csv", "jsonl"):
            self("queue", "create", queue, *QUEUE)
        self("feed", "create", "f", "--queue", "q")
        self("export", "create", "e", "--queue", "q", "--exporter", "files", "--target", str(self.directory))
        self("enqueue", "q", str(updates))
        self("drain", "q")
        self.rows("values", "q", "--format", "jsonl")
        for format in ("csv", "jsonl"):
            file = str(values.with_suffix(f".{format}"))
            self("values", "q", "--output", file)
            self("initialize", format, file)
            self.rows("values", format, "--format", "jsonl")
        self("top", "q", "--by", "n", "--json")
        self.rows("feed", "tail", "f")
        rollup = (
            "--key",
            "k",
            "--value",
            "sum(x) as x",
            "--value",
            "max(extract(epoch from t at time zone 'UTC')::bigint) as t",
            "--filter",
            r"k <> 'k1\'",
        )
        self("rollup", "create", "r", "--source", "public.src", *rollup, "--slice-by", "t")
        self("rollup", "backfill", "r")
        for queue in ("r", "q"):
            self("drain", queue)
            self("verify", queue)
        self("rollup", "verify", "r")
        self.rows("values", "r", "--format", "jsonl")
        assert self("doctor", told=False).returncode <= 1
        assert self("status", "--json", told=False).returncode == 0
        assert self("db", "upgrade", told=False).returncode == 0
        return self.told


@contextmanager
def made(server: Server, name: str, options: str = "") -> Iterator[str]:
    database = sql.Identifier(name)
    server.execute(sql.SQL("create database {} template template0 " + options).format(database))
    try:
        dsn = with_database(server.dsn, name)
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute(SOURCE.encode())
        yield dsn
    finally:
        server.execute(sql.SQL("drop database {} with (force)").format(database))


@pytest.fixture(scope="module")
def expected(server: Server, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, int, str]]:
    with made(server, "programs_default") as dsn:
        told = Run(dsn, tmp_path_factory.mktemp("default"), {}).flow()
    assert [step for step in told if step[1]] == []
    return told


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_commands_work_under_unusual_settings(
    server: Server, tmp_path: Path, expected: list[tuple[str, int, str]], case: str
) -> None:
    settings, environment = CASES[case]
    with made(server, "programs_settings") as dsn:
        name = sql.Identifier(str(conninfo_to_dict(dsn)["dbname"]))
        with psycopg.connect(dsn, autocommit=True) as conn:
            for setting, value in supported(conn, dict(settings)).items():
                conn.execute(
                    sql.SQL("alter database {} set {} = {}").format(name, sql.SQL(setting), sql.Literal(value))
                )
        assert Run(dsn, tmp_path, environment).flow() == expected
