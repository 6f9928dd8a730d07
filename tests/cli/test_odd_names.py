"""The commands that write or show a queue's rows work with odd names of columns."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg
import pytest
from support import run_cli
from support.queues import hold

from pgcombine.feed.feed import Feed
from pgcombine.queue.combine_queue import CombineQueue

NAMES = (
    *("100%", "%s", "%%", "%(a)s", "a%", "k%s%I", "select", "Upper", "a b", 'a"b', "a'b", "a\\b", "a:b", ":p0", "a.b"),
    *("{keys}", "{}", "{0}", "a{b", "$x", "?", "a,b", "a;b", "--", "/* */", "ä", "名", "1", "a-b", "a|b", "a\tb"),
    *("count", "old", "new", "n" * 55),
)


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_commands_take_odd_names_of_columns(conn: psycopg.Connection, dsn: str, tmp_path: Path) -> None:
    names = [name.replace('"', '""') for name in NAMES]
    queue = CombineQueue(
        "q", key=[f'"{name}" text' for name in names[:17]], value=[f'"{name}" bigint sum' for name in names[17:]]
    )
    queue.create(conn)
    Feed("f", queue="q").create(conn)
    row = {name: f"k{place}" if place < 17 else place for place, name in enumerate(NAMES)}
    key = {name: row[name] for name in NAMES[:17]}
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(row))
    csv = tmp_path / "rows.csv"
    hold(conn, "q", **{**key, "100%": "held"})  # type: ignore[arg-type]
    failed = {}
    for call in (
        *(
            ["enqueue", "q", file],
            ["drain", "q"],
            ["enqueue", "q", file, "--token", "t"],
            ["get", "q", json.dumps([*key.values()])],
        ),
        *(["top", "q", "--by", name] for name in NAMES[:6]),
        *(
            ["values", "q", "-o", csv],
            ["values", "q", "--json"],
            ["queue", "show", "q"],
            ["queue", "ls"],
            ["verify", "q"],
        ),
        *(["feed", "tail", "f", "--json"], ["feed", "show", "f"], ["status"], ["quarantine", "ls", "q"]),
        ["queue", "rebucket", "q", "8"],
    ):
        done = run_cli(*call, "--dsn", dsn)
        if done.returncode != 0:
            failed[str(call)] = done.stderr.strip().splitlines()[-1:]
    assert failed == {}, f"{len(failed)} commands fail"
    _, rows = Feed("f").snapshot(conn)
    assert [*rows] == [row]
    assert len([*Feed("f").read(conn, after={})]) == 1
    assert run_cli("queue", "drop", "q", "--force", "--yes", "--dsn", dsn).returncode == 0
    queue.create(conn)
    assert run_cli("initialize", "q", csv, "--dsn", dsn).returncode == 0
    assert dict(queue.values(conn)) == {tuple(key.values()): tuple(row[name] for name in NAMES[17:])}
