"""Commands show, retry and drop refused entries. ``export create`` has each option of ``create_export``."""

from __future__ import annotations

import json
from typing import Any

import psycopg
from support import run_cli
from support.exports import make_exported
from support.queues import combine, one
from support.servers import embedded_only

from pgcombine import Entry, ExportWorker


@embedded_only
def test_a_refused_entry_is_shown_and_retried_or_discarded(conn: psycopg.Connection, dsn: str) -> None:
    make_exported(conn)
    refused = {"ü", "worse"}
    delivered: list[str] = []

    def deliver(entries: list[Entry]) -> None:
        if at_fault := refused & {entry.key for entry in entries}:
            raise ValueError(f"refused: {sorted(at_fault)}")
        delivered.extend(entry.key for entry in entries)

    combine(conn, {"a": 1, "ü": 2, "worse": 3})
    worker = ExportWorker(dsn, "search", deliver)
    worker.drain()
    assert delivered == ["a"]
    listed = json.loads(run_cli("export", "quarantine", "ls", "search", "--json", "--dsn", dsn).stdout)
    seqs = {row["entry"]["word"]: str(row["seq"]) for row in listed}
    assert seqs.keys() == refused

    shown = run_cli("export", "quarantine", "show", "search", seqs["ü"], "--dsn", dsn)
    assert shown.returncode == 0, shown.stderr
    lines = dict(line.split(":", 1) for line in shown.stdout.splitlines())
    assert {name: text.strip() for name, text in lines.items() if name != "since"} == {
        "export": "search",
        "seq": seqs["ü"],
        "error": "ValueError: refused: ['ü']",
        "word": "ü",
        "old_n": "None",
        "new_n": "2",
    }
    as_json = json.loads(run_cli("export", "quarantine", "show", "search", seqs["ü"], "--json", "--dsn", dsn).stdout)
    assert as_json["entry"] == {"word": "ü", "old_n": None, "new_n": 2, "seq": int(seqs["ü"])}
    for missing in (("search", "999999"), ("other", "1")):
        told = run_cli("export", "quarantine", "show", *missing, "--dsn", dsn)
        assert (told.returncode, len(told.stderr.splitlines())) == (1, 1)

    refused.remove("ü")
    retried = run_cli("export", "quarantine", "retry", "search", seqs["ü"], "--dsn", dsn)
    assert retried.stdout == "pending again: 1 entry\n"
    dropped = run_cli("export", "quarantine", "drop", "search", "--all", "--yes", "--dsn", dsn)
    assert dropped.stdout == "dropped: 1 entry\n"
    worker.drain()
    assert delivered == ["a", "ü"]
    assert one(conn, "select quarantined from pgcombine.export_stat") == 0


def test_command_has_every_option_of_create_export(conn: psycopg.Connection) -> None:
    import typer

    from pgcombine.cli.app import app

    command: Any = typer.main.get_command(app)
    flags = {flag for param in command.commands["export"].commands["create"].params for flag in param.opts}
    options = one(conn, "select proargnames[3:] from pg_proc where oid = 'pgcombine.create_export'::regproc")
    flags -= {"name", "--queue", "--dsn", "--json"}
    assert {f"--{option.removeprefix('target_')}" for option in options} == flags
