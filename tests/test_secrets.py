"""Messages, logs and program arguments don't show secrets, and text from outside can't forge a line of output."""

from __future__ import annotations

import io
import json
import logging
import os
import stat
import traceback
from pathlib import Path

import pytest
from support import run_cli

from pgcombine.bench import pgbench
from pgcombine.cli.options import echo, print_json, print_table
from pgcombine.config import libpq_dsn
from pgcombine.errors import ConfigError, PgCombineError
from pgcombine.export.entries import Entry
from pgcombine.export.files import FileExporter
from pgcombine.runtime.printable import PrintableFormatter, printable

SECRET = "s3cret"
MALFORMED = [
    "postgresql://ann:s3cret@host:54x2/db",
    "postgresql://ann:s3cret@host:5432:1/db",
    "postgresql://ann:cafe@s3cret@host/db",
    "postgresql://ann:cafe/s3cret@host/db",
    "postgresql://ann:12/s3cret@host/db",
    "postgresql://ann:s3cret/@host/db",
    "postgresql://ann:s3cret:@[::1/db",
    "postgresql://ann:s3cret@[::1]x/db",
    "postgresql://ann:%zzs3cret@host/db",
    "postgresql://ann:s3cret%00@host/db",
    "postgresql://ann:s3cret@host/db?hots=b",
    "postgresql://host/db?password=s3cret=",
    "postgresql://host/db?s3cret",
    "postgresql+psycopg://ann:s3cret%@host/db",
    "postgres:/ann:s3cret@host/db",
    "postgres//ann:s3cret@host/db",
    "mysql://ann:s3cret@host/db",
    "ann:s3cret@host",
    "host=h password=my s3cret",
    "host=h password='s3cret",
    "host=h password='it's3cret",
    "host=h password='it''s3cret'",
    'host=h password="my s3cret"',
    'host=h password=a" s3cret "',
    "host=h s3cret=password",
    "host=h port=s3cret",
]


@pytest.mark.parametrize("dsn", MALFORMED)
def test_a_malformed_dsn_isnt_shown(dsn: str) -> None:
    with pytest.raises(ConfigError) as refused:
        libpq_dsn(dsn)
    shown = "".join(traceback.format_exception(refused.value))
    assert SECRET not in shown


def test_commands_dont_show_a_malformed_dsn() -> None:
    for dsn in MALFORMED[2:6]:
        for done in (run_cli("status", "--dsn", dsn), run_cli("status", env={"PGCOMBINE_DSN": dsn})):
            assert done.returncode == 1
            assert "the DSN can't be read" in done.stderr
            assert SECRET not in done.stdout + done.stderr


def test_pgbench_gets_no_password_as_an_argument(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "pgbench"
    program.write_text('#!/bin/sh\necho "arguments: $*; password: $PGPASSWORD" >&2\nexit 1\n')
    program.chmod(0o700)
    monkeypatch.setattr(pgbench, "find", lambda: str(program))
    with pytest.raises(PgCombineError) as failed:
        pgbench.finish(pgbench.start(f"postgresql://ann:{SECRET}@host/db", "select 1", clients=1, seconds=1))
    arguments, _, password = str(failed.value).partition("; password: ")
    assert "user=ann" in arguments
    assert SECRET not in arguments
    assert password == SECRET


FORGED = "no\n2026-01-01 00:00:00,000 INFO all is well\r\x1b[2J\x9b\u202e\u2028end"


def test_a_log_line_stays_one_line() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(PrintableFormatter("%(levelname)s %(message)s"))
    record = logging.LogRecord("pgcombine", logging.WARNING, "", 0, "failed error=%s", (FORGED,), None)
    handler.emit(record)
    assert stream.getvalue() == (
        "WARNING failed error=no\\n2026-01-01 00:00:00,000 INFO all is well\\r\\x1b[2J\\x9b\\u202e\\u2028end\n"
    )


def test_a_traceback_forges_no_line() -> None:
    try:
        raise ValueError(FORGED)
    except ValueError as error:
        text = PrintableFormatter("%(message)s").format(
            logging.LogRecord("pgcombine", logging.ERROR, "", 0, "failed", None, (ValueError, error, None))
        )
    assert "\x1b" not in text
    assert [line for line in text.splitlines()[1:] if not line.startswith("    ")] == []


def test_commands_print_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    echo(FORGED)
    print_table(["reason"], [[FORGED]])
    print_json({"reason": FORGED})
    lines = capsys.readouterr().out.splitlines()
    assert [line.strip() for line in lines[:3]] == [printable(FORGED), "reason", printable(FORGED)]
    assert json.loads(lines[3]) == {"reason": FORGED}
    assert "\x9b" not in lines[3]
    assert len(lines) == 4


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_exported_files_are_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        FileExporter(tmp_path, "search").deliver([Entry("a", None, 1, 1, "{}")])
        os.umask(0o077)
        FileExporter(tmp_path, "shared", mode=0o640).deliver([Entry("a", None, 1, 1, "{}")])
    finally:
        os.umask(before)
    assert {file.name.partition(".")[0]: mode(file) for file in tmp_path.iterdir()} == {
        "search": 0o600,
        "shared": 0o640,
    }
