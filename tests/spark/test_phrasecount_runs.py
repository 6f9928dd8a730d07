"""Runs of phrasecount as programs, beside each other, and after runs that failed or died."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from support import eventually, run_cli, start_cli
from support.phrases import Counts, expected, write_corpus
from support.servers import embedded_only

from pgcombine.phrasecount import state
from pgcombine.phrasecount.database import connect, ensure_schema

from .conftest import Run

pytestmark = [pytest.mark.spark, embedded_only]
Values = Callable[[], Counts]
LOCK = "lock table phrasecount.directory in share update exclusive mode"


def ensure(dsn: str) -> None:
    """Create phrasecount's schema, as a first run does."""
    with closing(connect(dsn)) as connection:
        ensure_schema(connection)


@pytest.mark.slow
def test_program_prints_json_alone_and_leaves_no_files(
    dsn: str, values: Values, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, scratch, cwd = tmp_path / "corpus", tmp_path / "scratch", tmp_path / "cwd"
    scratch.mkdir()
    cwd.mkdir()
    write_corpus(corpus, 6, seed=1)
    done = run_cli("phrasecount", corpus, "--verify", "--json", env={"PGCOMBINE_DSN": dsn, "TMPDIR": scratch}, cwd=cwd)
    assert (done.returncode, done.stderr) == (0, "")
    figures = json.loads(done.stdout)
    assert {"documents", "changed", "updates", "phrases", "passes", "seconds", "sink"} <= figures.keys()
    assert (figures["documents"], figures["phrases"]) == (6, len(expected(corpus)))
    assert values() == expected(corpus)
    assert list(cwd.iterdir()) == []
    eventually(lambda: not list(scratch.iterdir()), what="nothing is in the scratch directory")


@pytest.mark.slow
def test_concurrent_runs_wait_and_count_right(
    dsn: str, conn: psycopg.Connection, values: Values, tmp_path: Path
) -> None:
    write_corpus(tmp_path, 20, seed=2)
    waiting = "select count(*) from pg_locks where relation = 'phrasecount.directory'::regclass and not granted"
    ensure(dsn)
    env = {"PGCOMBINE_DSN": dsn}
    with (
        closing(psycopg.connect(dsn)) as other,
        start_cli("phrasecount", tmp_path, "--json", env=env) as one,
        start_cli("phrasecount", tmp_path, "--json", env=env) as two,
    ):
        other.execute(LOCK)
        eventually(lambda: conn.execute(waiting).fetchone() == (2,), timeout=240)
        other.rollback()
        outputs = [process.communicate(timeout=120)[0].splitlines() for process in (one, two)]
    assert {lines[0] for lines in outputs} == {"waiting for another run of phrasecount in this database"}
    assert sorted(json.loads(lines[-1])["updates"] for lines in outputs) == [0, len(expected(tmp_path))]
    assert values() == expected(tmp_path)


def test_end_of_a_run_keeps_rows_of_the_next_run(
    run: Run, dsn: str, conn: psycopg.Connection, values: Values, tmp_path: Path
) -> None:
    """The first run's commit releases the lock, so the first run must not remove rows that the next run has written."""
    load = uuid4()
    with state.locked(dsn, lambda: None) as first, closing(connect(dsn)) as work:
        first.commit()
        with state.locked(dsn, lambda: None):
            state.list_work(work, load, ["a", "b"], None)
            state.clean_after(first, work)
            assert conn.execute("select count(*) from phrasecount.listed").fetchone() == (2,)

        def cleaned() -> bool:  # the session of the second run may hold the lock for a moment after its end
            state.clean_after(first, work)
            return conn.execute("select count(*) from phrasecount.listed").fetchone() == (0,)

        eventually(cleaned)


@pytest.mark.slow
def test_updates_and_state_commit_together(run: Run, conn: psycopg.Connection, values: Values, tmp_path: Path) -> None:
    write_corpus(tmp_path, 2, seed=4)
    run(tmp_path)
    before = values()
    conn.execute(
        """
        create function phrasecount.refuse() returns trigger language plpgsql
        as $$ begin raise exception 'refused by the test'; end $$;
        create trigger refuse before insert on phrasecount.document
            execute function phrasecount.refuse()
        """
    )
    write_corpus(tmp_path, 2, seed=5)
    failed = run(tmp_path)
    assert (failed.code, failed.stderr) == (1, "pgcombine: refused by the test\n")
    assert conn.execute("select pgcombine.backlog('phrases')").fetchone() == (0,)
    assert values() == before
    conn.execute("drop trigger refuse on phrasecount.document")
    assert run(tmp_path, "--verify").json["edited"] == 2
    assert values() == expected(tmp_path)


@pytest.mark.slow
def test_updates_of_a_run_that_died_before_combining_are_combined(
    run: Run, conn: psycopg.Connection, values: Values, tmp_path: Path
) -> None:
    write_corpus(tmp_path, 2, seed=6)
    run(tmp_path)
    conn.execute("insert into pgcombine.phrases_updates values ('left by a dead run', 1, 1)")
    figures = run(tmp_path).json
    assert (figures["updates"], figures["passes"]) == (0, 1)
    assert values()["left by a dead run"] == (1, 1)


@pytest.mark.slow
def test_leftovers_of_a_dead_run_do_no_harm(
    run: Run, dsn: str, conn: psycopg.Connection, values: Values, tmp_path: Path
) -> None:
    write_corpus(tmp_path, 2, seed=7)
    hashes = [hashlib.sha256(name).digest() for name in (b"one", b"two")]
    ensure(dsn)
    conn.execute("select phrasecount.keep(%b::bytea[], array[1, 2], array[0, 0], array['of a', 'dead run'])", (hashes,))
    conn.execute(
        "insert into phrasecount.scanned (load, n, content_hash, document) values (gen_random_uuid(), 0, %b, %b)",
        (hashes[0], hashes[0]),
    )
    # as if a writer of a dead run still had a lock on the table; the next run must not wait for it
    with conn.transaction():
        conn.execute("lock table phrasecount.scanned in row exclusive mode")
        run(tmp_path)
    assert values() == expected(tmp_path)
    run(tmp_path)
    left = (
        "select (select count(*) from phrasecount.scanned) + (select count(*) from phrasecount.kept) + "
        "(select count(*) from phrasecount.document_chunk c "
        "where not exists (select from phrasecount.document d where d.hash = c.document))"
    )
    assert conn.execute(left).fetchone() == (0,)


@pytest.mark.slow
def test_document_that_a_dead_run_wrote_is_used(
    run: Run, dsn: str, conn: psycopg.Connection, values: Values, tmp_path: Path
) -> None:
    """A writer may outlive its killed run and write a document that the next run needs, too."""
    (tmp_path / "file").write_text("one two three four five")
    ensure(dsn)
    with conn.transaction():
        conn.execute(
            "select phrasecount.keep(array[sha256('one two three four five ')], array[1, 1], array[0, 1], "
            "array['one two three four', 'two three four five'])"
        )
        conn.execute(
            "create function phrasecount.nothing() returns trigger language plpgsql as 'begin return null; end'"
        )
        conn.execute(  # as if a writer stored the document after the cleanup of the run
            "create trigger keep before delete on phrasecount.kept for each row execute function phrasecount.nothing()"
        )
        conn.execute(
            "create trigger keep before delete on phrasecount.document_chunk "
            "for each row execute function phrasecount.nothing()"
        )
    run(tmp_path)
    assert values() == expected(tmp_path)
    assert conn.execute("select count(*) from phrasecount.document_chunk").fetchone() == (2,)


def test_another_queue_of_that_name_is_refused(run: Run, conn: psycopg.Connection, tmp_path: Path) -> None:
    conn.execute("select pgcombine.create_queue('phrases', array['word text'], array['n bigint sum'])")
    answer = run(tmp_path)
    assert answer.code == 1
    assert answer.stderr.startswith("pgcombine: queue \"phrases\" is there but isn't phrasecount's")


@pytest.mark.slow
def test_dropped_queue_is_refused_while_documents_are_recorded(
    run: Run, conn: psycopg.Connection, values: Values, tmp_path: Path
) -> None:
    write_corpus(tmp_path, 2, seed=8)
    run(tmp_path)
    conn.execute("select pgcombine.drop_export('phrases_search')")
    conn.execute("select pgcombine.drop_queue('phrases')")
    answer = run(tmp_path)
    assert answer.code == 1
    assert answer.stderr.startswith('pgcombine: queue "phrases" was dropped')
    conn.execute("truncate phrasecount.directory, phrasecount.document cascade")  # as the message says
    run(tmp_path)
    assert values() == expected(tmp_path)
