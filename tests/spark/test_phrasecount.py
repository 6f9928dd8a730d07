"""The command phrasecount: what it counts and enqueues after files were changed, its options and its output."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from shutil import rmtree

import psycopg
import pytest
from support.phrases import Counts, differences, edit_corpus, expected, write_corpus
from support.queues import write_values
from support.servers import embedded_only
from typer.testing import CliRunner

from pgcombine.cli.app import app
from pgcombine.phrasecount.corpus import Corpus
from pgcombine.phrasecount.report import Report
from pgcombine.phrasecount.run import count
from pgcombine.phrasecount.tokens import Document, counted

from .conftest import Run
from .frames import COPY_FIRST

pytestmark = pytest.mark.spark
Values = Callable[[], Counts]


@COPY_FIRST
def test_counts_follow_edited_documents(run: Run, values: Values, tmp_path: Path, sink: str) -> None:
    foo1, foo2, foo3 = (tmp_path / f"foo{i}" for i in (1, 2, 3))
    over = "The test is over, for now."

    def counted(**wanted: int) -> Counts:
        figures = run(tmp_path, "--sink", sink).json
        assert figures["sink"] == sink
        assert {name: figures[name] for name in wanted} == wanted
        return values()

    foo1.write_text("This is only a test. Do not panic. This is only a test.")
    found = counted(documents=1, changed=1, updates=8)
    assert found["is only a test"] == (1, 2)
    assert found["test do not panic"] == (1, 1)

    foo2.write_text("This is only a test")
    assert counted(documents=2, changed=1, updates=2)["is only a test"] == (2, 3)

    foo3.write_text("This is only a test")
    before = values()
    assert counted(documents=3, changed=1, updates=0) == before

    foo1.write_text(over)
    found = counted(documents=3, changed=1)
    assert found["the test is over"] == (1, 1)
    assert found["is only a test"] == (1, 1)
    assert "test do not panic" not in found

    foo2.write_text(over)
    found = counted(updates=0)
    assert found["the test is over"] == (1, 1)
    assert found["is only a test"] == (1, 1)

    foo3.write_text(over)
    found = counted(changed=1, updates=2)
    assert "is only a test" not in found
    assert found == expected(tmp_path)


def test_dead_document_leaves_the_database(run: Run, conn: psycopg.Connection, tmp_path: Path) -> None:
    file = tmp_path / "file"
    for text in ("one two three four", "five six seven eight"):
        file.write_text(text)
        run(tmp_path)
        assert conn.execute("select tokens from phrasecount.document_chunk").fetchall() == [(text,)]
        assert conn.execute("select refs from phrasecount.document").fetchall() == [(1,)]


@pytest.mark.slow
@embedded_only
@pytest.mark.parametrize("small", [0, 2000])
def test_only_differences_are_enqueued(
    run: Run, values: Values, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    """With 2,000 bytes the process reads a part of the files, and Spark the rest; some runs don't need Spark."""
    monkeypatch.setattr("pgcombine.phrasecount.run.SMALL", small)
    write_corpus(tmp_path, 12, seed=2)
    before = expected(tmp_path)
    assert run(tmp_path).json["updates"] == len(before)
    assert values() == before

    figures = run(tmp_path).json
    assert (figures["updates"], figures["changed"], figures["passes"]) == (0, 0, 0)

    chance = random.Random(3)
    for _ in range(3):
        edit_corpus(tmp_path, chance)
        after = expected(tmp_path)
        assert run(tmp_path).json["updates"] == differences(before, after)
        assert values() == after
        before = after
    assert run(tmp_path, "--verify").json["verified"]["phrases"] == len(before)


@embedded_only
def test_small_changes_are_counted_without_spark(
    dsn: str, values: Values, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pgcombine.phrasecount.run.borrowed_session", None)
    write_corpus(tmp_path, 12, seed=2)
    chance = random.Random(3)
    before: Counts = {}
    for change in (lambda: None, lambda: None, lambda: edit_corpus(tmp_path, chance), lambda: rmtree(tmp_path)):
        change()
        after = expected(tmp_path)
        figures = count(dsn, Corpus(tmp_path), report=Report())
        assert figures.updates == differences(before, after)
        assert values() == after
        before = after


def test_counters_of_a_large_document_are_those_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    chunks = list(Document("one two three four " * 50 + "x" * 2585 + " five six seven").chunks(100))
    (whole,) = counted(chunks)
    monkeypatch.setattr("pgcombine.phrasecount.tokens._COUNTED_CHARACTERS", 300)
    parts = list(counted(chunks))
    assert len(parts) > 3
    assert sum(map(len, parts)) == len(whole) == 4 + 3  # "three four x… five" has 2,601 bytes
    assert sum(parts, Counter()) == whole


@embedded_only
def test_white_space_changes_no_count(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("one two three four five")
    run(tmp_path)
    (tmp_path / "file").write_text("ONE, two -- three\n\nfour_five!")
    figures = run(tmp_path).json
    assert (figures["edited"], figures["updates"]) == (1, 0)
    assert run(tmp_path).json["changed"] == 0


@pytest.mark.slow
@embedded_only
def test_document_larger_than_a_chunk_is_counted(run: Run, values: Values, tmp_path: Path) -> None:
    write_corpus(tmp_path, 2, seed=4, words=60_000)
    run(tmp_path, "--verify")
    assert values() == expected(tmp_path)


@pytest.mark.slow
@embedded_only
def test_two_directories_count_together(run: Run, values: Values, tmp_path: Path) -> None:
    left, right = tmp_path / "left", tmp_path / "right"
    write_corpus(left, 5, seed=5)
    write_corpus(right, 4, seed=6)
    (right / "same").write_bytes((left / "000.txt").read_bytes())
    run(left)
    assert run(right, "--verify").code == 0
    assert values() == expected(left, right)

    (left / "000.txt").unlink()  # the other directory still has this document
    assert run(left, "--verify").json["updates"] == 0
    (right / "same").unlink()
    assert run(right).json["updates"] > 0
    assert values() == expected(left, right)


@pytest.mark.slow
@embedded_only
def test_directory_goes_by_its_real_path(run: Run, tmp_path: Path) -> None:
    write_corpus(tmp_path / "real", 3, seed=7)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    run(tmp_path / "real")
    figures = run(tmp_path / "link").json
    assert (figures["changed"], figures["directory"]) == (0, str((tmp_path / "real").resolve()))


@pytest.mark.slow
@embedded_only
def test_limit_counts_the_first_and_never_takes_away(run: Run, values: Values, tmp_path: Path) -> None:
    for name in "abcd":
        (tmp_path / name).write_text(f"{name} one two three")
    assert run(tmp_path, "--limit", 2).json["documents"] == 2
    assert set(values()) == {"a one two three", "b one two three"}

    assert run(tmp_path, "--limit", 3, "--verify").json["added"] == 1
    refused = run(tmp_path, "--limit", 1)
    assert refused.code == 1
    assert refused.stderr.startswith("pgcombine: --limit 1 would remove the counts of 2 documents")
    assert refused.stderr.count("\n") == 1
    assert len(values()) == 3

    (tmp_path / "a").unlink()  # deleted from the disk, so it must no longer count
    assert run(tmp_path, "--limit", 2).json["removed"] == 1
    assert set(values()) == {"b one two three", "c one two three"}
    assert run(tmp_path).json["added"] == 1


@pytest.mark.slow
@embedded_only
def test_output_shows_the_top_phrases(spark: object, dsn: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a b c d a b c d a")
    result = CliRunner().invoke(app, ["phrasecount", str(tmp_path), "--dsn", dsn, "--top", "1", "--verify"])
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[1].split() == ["a", "b", "c", "d", "1", "2"]
    assert "5 updates, combined in" not in result.stdout  # 4 phrases: "a b c d", "b c d a", "c d a b", "d a b c"
    assert "4 updates, combined in" in result.stdout
    assert lines[-1] == "verified: a recount of 1 unique documents has the same 4 phrases"
    assert result.stderr == ""


@pytest.mark.slow
@embedded_only
def test_verify_finds_a_wrong_value(run: Run, conn: psycopg.Connection, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("one two three four five six")
    run(tmp_path)
    write_values(conn, "update pgcombine.phrases_values set total = 7 where phrase = 'one two three four'")
    write_values(conn, "delete from pgcombine.phrases_values where phrase = 'two three four five'")
    write_values(conn, "insert into pgcombine.phrases_values values ('made up by someone', 1, 1)")
    answer = run(tmp_path, "--verify")
    assert answer.code == 1
    assert "verification failed: 3 phrases differ" in answer.stderr
    assert "'one two three four' is (1, 7), recounted (1, 1)" in answer.stderr
    assert "'two three four five' is none, recounted (1, 1)" in answer.stderr
    assert "'made up by someone' is (1, 1), recounted none" in answer.stderr


@embedded_only
def test_jdbc_is_refused_on_a_unix_socket(spark: object, dsn: str, values: Values, tmp_path: Path) -> None:
    """The DSN names a Unix socket, which JDBC can't use, so ``--sink jdbc`` is refused."""
    (tmp_path / "file").write_text("a b c d")
    with psycopg.connect(dsn) as conn:
        row = conn.execute("select split_part(current_setting('unix_socket_directories'), ',', 1)").fetchone()
    assert row is not None
    by_socket = psycopg.conninfo.make_conninfo(dsn, host=row[0].strip('"'), hostaddr=None)
    command = ["phrasecount", str(tmp_path), "--dsn", by_socket]
    refused = CliRunner().invoke(app, [*command, "--sink", "jdbc"])
    assert refused.exit_code == 1
    assert "JDBC can't work: the server was reached through a Unix socket" in refused.output
    assert CliRunner().invoke(app, [*command, "--sink", "copy"]).exit_code == 0
    assert values() == {"a b c d": (1, 1)}
