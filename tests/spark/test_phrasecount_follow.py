"""``phrasecount --follow`` keeps the counts exact when files are added, changed and deleted, also after kills."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support import eventually, run_cli, start_cli
from support.phrases import Counts, edit_corpus, expected, write_corpus
from support.queues import one
from support.servers import embedded_only

from pgcombine.errors import QueueError
from pgcombine.phrasecount.corpus import Corpus
from pgcombine.phrasecount.report import Report
from pgcombine.phrasecount.search import Search

from .conftest import Run

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600), embedded_only]
Values = Callable[[], Counts]
WAIT = 240.0  # seconds; only a failing test waits so long


@pytest.fixture
def followed(spark: Any, dsn: str, values: Values, tmp_path: Path) -> Callable[..., Any]:
    """Returns a context manager that follows the test's directory, and yields the list of the runs' results."""

    @contextmanager
    def followed(there: str | None = None, **options: Any) -> Iterator[list[Any]]:
        from pgcombine.phrasecount.follow import follow

        stop, told, failures = threading.Event(), [], []

        def run() -> None:
            try:
                follow(
                    dsn,
                    Corpus(tmp_path),
                    report=Report(),
                    stop=stop,
                    on_run=told.append,
                    search=Search(dsn, there),
                    poll=0.05,
                    **options,
                )
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield told
        finally:
            stop.set()
            thread.join(WAIT)
        assert not thread.is_alive()
        if failures:
            raise failures[0]

    return followed


def reaches(values: Values, directory: Path) -> None:
    eventually(lambda: values() == expected(directory), timeout=WAIT, what="the counts are those of the files")


def test_stream_goes_on_while_the_other_database_is_down(
    followed: Any, values: Values, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_corpus(tmp_path, 2, seed=1)
    with followed(there="host=127.0.0.1 port=1") as told:
        eventually(lambda: told, timeout=WAIT)
        (tmp_path / "new.txt").write_text("one two three four")
        reaches(values, tmp_path)
    assert "the search table isn't up to date: the search table's database can't be" in capsys.readouterr().err


def test_counts_follow_new_changed_and_deleted_files(followed: Any, values: Values, tmp_path: Path) -> None:
    write_corpus(tmp_path, 6, seed=1)
    chance = random.Random(2)
    with followed() as told:
        eventually(lambda: told, timeout=WAIT)
        assert (told[0].added, values()) == (6, expected(tmp_path))
        for _ in range(2):
            edit_corpus(tmp_path, chance)
            reaches(values, tmp_path)
        for path in [path for path in tmp_path.rglob("*") if path.is_file()]:
            path.unlink()
        reaches(values, tmp_path)


@pytest.mark.slow
def test_edit_that_keeps_size_and_modification_time_counts(
    followed: Any, conn: psycopg.Connection, values: Values, tmp_path: Path
) -> None:
    write_corpus(tmp_path, 3, seed=3)
    for path in [path for path in tmp_path.rglob("*") if path.is_file()]:
        os.utime(path, (1, 1))
    with followed() as told:
        eventually(lambda: told, timeout=WAIT)
        # this edit changes the text and the inode's change time, but neither size nor modification time
        (path,) = tmp_path.glob("*.txt")
        text = path.read_text()
        path.write_text(text[::-1])
        os.utime(path, (1, 1))
        reaches(values, tmp_path)
        eventually(lambda: len(told) > 1, timeout=WAIT)
        assert (told[1].edited, told[1].documents) == (1, 3)


@pytest.mark.slow
def test_counts_follow_edits_within_a_clock_tick(followed: Any, values: Values, tmp_path: Path) -> None:
    """Quick edits leave the size of the file unchanged."""
    file = tmp_path / "file"
    with followed() as told:
        eventually(lambda: told, timeout=WAIT)
        for number in range(200):
            file.write_text(f"one two three {number:04}")
        reaches(values, tmp_path)
        assert set(values()) == {"one two three 0199"}


@pytest.mark.slow
def test_failed_run_is_repeated(
    followed: Any, conn: psycopg.Connection, values: Values, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_corpus(tmp_path, 3, seed=4)
    with followed() as told:
        eventually(lambda: told, timeout=WAIT)
        conn.execute("alter table phrasecount.uri rename to away")
        (tmp_path / "new").write_text("five six seven eight")
        errors: list[str] = []
        told_so = "a run failed: "
        eventually(lambda: errors.append(capfd.readouterr().err) or told_so in errors[-1], timeout=WAIT)
        conn.execute("alter table phrasecount.away rename to uri")
        reaches(values, tmp_path)


def test_queue_of_another_kind_ends_the_stream(spark: Any, dsn: str, conn: psycopg.Connection, tmp_path: Path) -> None:
    from pgcombine.phrasecount.follow import follow

    conn.execute("select pgcombine.create_queue('phrases', array['word text'], array['n bigint sum'])")
    with pytest.raises(QueueError):
        follow(dsn, Corpus(tmp_path), report=Report(), stop=threading.Event(), on_run=lambda _: None)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_counts_are_right_after_kills(
    run: Run, dsn: str, conn: psycopg.Connection, values: Values, tmp_path: Path
) -> None:
    """The first kill comes when updates are committed, the second when they have become values."""
    write_corpus(tmp_path, 10, seed=5)
    run(tmp_path)
    chance = random.Random(6)
    edit_corpus(tmp_path, chance)
    env = {"PGCOMBINE_DSN": dsn}
    conn.execute("select pgcombine.pause('phrases')")  # the paused queue keeps the process at the wanted point
    with start_cli("phrasecount", tmp_path, "--follow", "--poll", 0.1, env=env, stdout=subprocess.DEVNULL) as process:
        eventually(lambda: one(conn, "select pgcombine.backlog('phrases')"), timeout=WAIT, what="a run has committed")
        process.send_signal(signal.SIGKILL)
    conn.execute("select pgcombine.resume('phrases')")
    edit_corpus(tmp_path, chance)
    with start_cli("phrasecount", tmp_path, "--follow", "--json", env=env) as process:
        reaches(values, tmp_path)
        process.kill()
    figures = run(tmp_path, "--verify").json
    assert figures["verified"]["mismatches"] == 0
    assert values() == expected(tmp_path)
    assert one(conn, "select count(*) from phrasecount.search where not pgcombine_deleted") == len(values())


@pytest.mark.slow
def test_program_stops_on_a_signal(dsn: str, values: Values, tmp_path: Path) -> None:
    write_corpus(tmp_path, 4, seed=7)
    with start_cli("phrasecount", tmp_path, "--follow", "--json", env={"PGCOMBINE_DSN": dsn}) as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        output = process.communicate(timeout=WAIT)[0]
    assert (process.returncode, output) == (0, "")
    assert (first["added"], first["phrases"]) == (4, len(expected(tmp_path)))
    assert values() == expected(tmp_path)


def test_contradicting_options_are_refused(dsn: str, tmp_path: Path) -> None:
    for option in (["--verify"], ["--limit", "3"]):
        done = run_cli("phrasecount", tmp_path, "--follow", *option, "--dsn", dsn)
        assert done.returncode == 2
        assert "can't be used with --follow" in done.stderr
