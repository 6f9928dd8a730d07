"""``initialize`` writes values into a queue, and makes no updates or changes. If it refuses a row, it writes none."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import psycopg
import pytest
from support import eventually, run_cli, start_cli

from pgcombine.errors import InvalidDefinitionError, InvalidUpdateError, QueueNotEmptyError, QueueNotFoundError
from pgcombine.queue.combine_queue import CombineQueue

WC = CombineQueue("wc", key=["word text"], value=["n bigint sum"], delete_when="n = 0", buckets=4)


@pytest.fixture
def wc(conn: psycopg.Connection) -> psycopg.Connection:
    WC.create(conn)
    return conn


def values(conn: psycopg.Connection) -> list[tuple[str, int]]:
    return conn.execute("select word, n from pgcombine.wc_values order by 1").fetchall()


def test_initialize_writes_values_without_updates_or_changes(wc: psycopg.Connection) -> None:
    wc.execute("create table audit (word text, old_n bigint, new_n bigint)")
    wc.execute(
        "select pgcombine.add_observer('wc', 'audit', 'insert into audit select word, old_n, new_n from changes')"
    )
    assert WC.initialize(wc, [("a", 1), {"word": "b", "n": 2}, ("gone", 0)]) == 2
    assert values(wc) == [("a", 1), ("b", 2)]
    assert WC.backlog(wc) == 0
    WC.enqueue(wc, [("a", 1), ("b", -2), ("c", 3)])
    wc.execute("select pgcombine.combine('wc', b) from generate_series(0, 3) b")
    assert values(wc) == [("a", 2), ("c", 3)]
    audit = wc.execute("select * from audit order by 1").fetchall()
    assert audit == [("a", 1, 2), ("b", 2, None), ("c", None, 3)]
    assert WC.verify(wc) == []


def test_queue_with_values_is_refused_without_force(wc: psycopg.Connection) -> None:
    WC.enqueue(wc, [("a", 1)])
    with pytest.raises(QueueNotEmptyError):
        WC.initialize(wc, [("b", 1)])
    wc.execute("select pgcombine.combine('wc')")
    with pytest.raises(QueueNotEmptyError):
        WC.initialize(wc, [("b", 1)])
    assert WC.initialize(wc, [("b", 1)], force=True) == 1
    with pytest.raises(InvalidUpdateError):
        WC.initialize(wc, [("c", 1), ("a", 1)], force=True)
    assert values(wc) == [("a", 1), ("b", 1)]


def test_initialize_blocks_passes_but_not_enqueues(wc: psycopg.Connection, dsn: str) -> None:
    with psycopg.connect(dsn) as loader:
        WC.initialize(loader, [("a", 1)])
        WC.enqueue(wc, [("a", 1)])
        assert wc.execute("select * from generate_series(0, 3) b, pgcombine.combine('wc', b)").fetchall() == []
        loader.commit()
    wc.execute("select pgcombine.combine('wc')")
    assert values(wc) == [("a", 2)]


def test_unknown_queue_and_isolation_level_are_refused(wc: psycopg.Connection, dsn: str) -> None:
    with pytest.raises(QueueNotFoundError):
        CombineQueue("nope").initialize(wc, [("a", 1)])
    with psycopg.connect(dsn) as other:
        other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        with pytest.raises(InvalidDefinitionError):
            WC.initialize(other, [("a", 1)])


def test_command_initializes(wc: psycopg.Connection, dsn: str, tmp_path: Path) -> None:
    file = tmp_path / "values.csv"
    file.write_text("word,n\na,1\nb,2\na,3\n")
    double = run_cli("initialize", "wc", file, "--dsn", dsn)
    assert double.returncode == 1
    assert "Key (word)=(a)" in double.stderr
    assert len(double.stderr.splitlines()) == 1
    file.write_text("word,n\na,1\nb,2\n")
    done = run_cli("initialize", "wc", file, "--json", "--dsn", dsn)
    assert (done.returncode, json.loads(done.stdout)) == (0, {"queue": "wc", "keys": 2}), done.stderr
    again = run_cli("initialize", "wc", file, "--dsn", dsn)
    assert again.returncode == 1
    more = run_cli("initialize", "wc", "-", "--force", "--dsn", dsn, input='{"word": "c", "n": 3}\n')
    assert (more.returncode, more.stdout) == (0, "initialized: 1 key\n"), more.stderr
    assert values(wc) == [("a", 1), ("b", 2), ("c", 3)]


def test_killed_command_loads_nothing(wc: psycopg.Connection, dsn: str, tmp_path: Path) -> None:
    import os

    fifo = tmp_path / "values.jsonl"
    os.mkfifo(fifo)
    with start_cli("initialize", "wc", fifo, "--dsn", dsn) as command, fifo.open("w") as rows:
        for number in range(20000):
            rows.write(json.dumps({"word": f"w{number}", "n": 1}) + "\n")
        rows.flush()
        copies = "select from pg_stat_activity where query like 'copy%%wc_values%%' and state = 'active'"
        eventually(lambda: wc.execute(copies).fetchall())
        command.send_signal(signal.SIGKILL)
        command.wait()
    eventually(lambda: not wc.execute(copies).fetchall())
    assert values(wc) == []
    WC.initialize(wc, [("a", 1)])
