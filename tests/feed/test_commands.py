"""The verbs of ``pgcombine feed``."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import psycopg
import pytest
from support import run_cli, start_cli
from support.queues import combine, make_queue, one


@pytest.fixture
def feed(conn: psycopg.Connection, dsn: str) -> str:
    """The URI of a database with a feed."""
    make_queue(conn, buckets=1)
    made = run_cli("feed", "create", "f", "--queue", "wc", "--retention", "0.5", "--dsn", dsn)
    assert (made.returncode, made.stdout) == (0, "created: f\n"), made.stderr
    return dsn


def test_feed_is_listed_shown_and_dropped(conn: psycopg.Connection, feed: str) -> None:
    combine(conn, {"a": 1})
    conn.execute("""select pgcombine.commit_feed('f', 'search', '{"0": 0}')""")
    (listed,) = json.loads(run_cli("feed", "ls", "--json", "--dsn", feed).stdout)
    assert (listed.pop("bytes") > 0, listed.pop("lag_seconds") > 0, listed) == (
        True,
        True,
        {
            "feed": "f",
            "queue": "wc",
            "retention_seconds": 43200,
            "max_bytes": None,
            "kept": 1,
            "consumers": 1,
            "behind": 1,
        },
    )
    for command in (["feed", "ls"], ["status"]):
        assert "f wc 1" in " ".join(run_cli(*command, "--dsn", feed).stdout.split())
    shown = run_cli("feed", "show", "f", "--dsn", feed).stdout
    assert 'offset:            {"0": 1}' in shown
    assert "search" in shown
    assert json.loads(run_cli("feed", "show", "f", "--json", "--dsn", feed).stdout)["consumers"][0]["after"] == {"0": 0}
    asked = run_cli("feed", "drop", "f", "--dsn", feed)
    assert 'feed "f" with 1 change will be dropped' in asked.stderr
    assert run_cli("feed", "drop", "f", "--yes", "--dsn", feed).stdout == "dropped: f\n"
    assert one(conn, "select count(*) from pgcombine.change_log") == 0
    missing = run_cli("feed", "show", "f", "--dsn", feed)
    assert missing.stderr == 'pgcombine: there is no feed "f" (pgcombine feed ls lists them)\n'


def test_tail_goes_on_after_the_offset_in_the_file(conn: psycopg.Connection, feed: str, tmp_path: Path) -> None:
    file = tmp_path / "offset"
    tail = ("feed", "tail", "f", "--offset-file", file, "--dsn", feed)
    combine(conn, {"a": 1})
    assert run_cli(*tail).stdout == 'insert 0:1 word="a" old_n=null new_n=1\n'
    assert json.loads(file.read_text()) == {"0": 1}
    assert run_cli(*tail).stdout == ""
    combine(conn, {"a": 1})
    (row,) = map(json.loads, run_cli(*tail, "--json").stdout.splitlines())
    assert (row["_change_type"], row["old_n"], row["new_n"]) == ("update", 1, 2)
    assert len(run_cli("feed", "tail", "f", "--after", '{"0": 1}', "--dsn", feed).stdout.splitlines()) == 1
    assert len(run_cli("feed", "tail", "f", "--compact", "--dsn", feed).stdout.splitlines()) == 1


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_tail_follows_until_it_is_stopped(conn: psycopg.Connection, feed: str, tmp_path: Path, how: int) -> None:
    file = tmp_path / "offset"
    with start_cli("feed", "tail", "f", "--follow", "--json", "--offset-file", file, "--dsn", feed) as tail:
        assert tail.stdout
        for n in (1, 2):
            combine(conn, {"a": 1})
            assert json.loads(tail.stdout.readline())["new_n"] == n
        tail.send_signal(how)
        assert tail.wait(30) == 0
        assert tail.stdout.read() == ""
    assert json.loads(file.read_text())["0"] in (1, 2)


@pytest.mark.parametrize(("text", "problem"), [("", "has no offset"), ("[]", "has no offset"), ('{"7": 1}', "bucket")])
def test_tail_refuses_a_wrong_offset(feed: str, tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "offset"
    file.write_text(text)
    refused = run_cli("feed", "tail", "f", "--offset-file", file, "--dsn", feed)
    assert refused.returncode != 0
    assert problem in refused.stderr
    assert file.read_text() == text


def test_tail_says_that_an_offset_is_too_old(conn: psycopg.Connection, feed: str) -> None:
    conn.execute("""update pgcombine.change_log set reclaimed = '{"0": 1}'""")
    combine(conn, {"a": 1, "b": 1})
    refused = run_cli("feed", "tail", "f", "--after", '{"0": 0}', "--dsn", feed)
    assert (refused.returncode, "read it all again" in refused.stderr) == (1, True)
