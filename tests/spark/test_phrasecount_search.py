"""phrasecount's search table equals the values after a run, also after a kill and in another database."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from support.phrases import Counts, edit_corpus, expected, write_corpus
from support.queues import one
from support.servers import Server, embedded_only

from .conftest import Run

pytestmark = [pytest.mark.spark, embedded_only]
Values = Callable[[], Counts]


@pytest.fixture
def there(server: Server) -> Iterator[str]:
    """Yields the URI of another database."""
    with server.database() as dsn:
        yield dsn


def table(dsn: str) -> Counts:
    with psycopg.connect(dsn) as conn:
        rows = conn.execute("select phrase, docs, total from phrasecount.search where not pgcombine_deleted").fetchall()
    return {phrase: (docs, total) for phrase, docs, total in rows}


def waiting(conn: psycopg.Connection) -> int:
    return one(conn, "select count(*) from pgcombine.phrases_search_exports")


def test_search_table_is_equal_to_the_values(run: Run, dsn: str, values: Values, tmp_path: Path) -> None:
    write_corpus(tmp_path, 4, seed=1)
    chance = random.Random(2)
    delivered = []
    for _ in range(2):
        figures = run(tmp_path).json
        delivered.append((figures["delivered"], figures["updates"]))
        assert table(dsn) == values() == expected(tmp_path)
        edit_corpus(tmp_path, chance)
    # the first run copies all values into the table; later runs export only changes
    assert delivered == [(0, delivered[0][1]), *[(updates, updates) for _, updates in delivered[1:]]]


def test_counts_are_right_if_the_other_database_is_down(run: Run, dsn: str, values: Values, tmp_path: Path) -> None:
    write_corpus(tmp_path, 2, seed=1)
    answer = run(tmp_path, "--search-dsn", "host=127.0.0.1 port=1")
    assert answer.code == 1
    assert "the search table's database can't be reached: connection failed" in answer.stderr
    assert values() == expected(tmp_path)  # all files were counted
    run(tmp_path)
    assert table(dsn) == values()


@pytest.mark.slow
def test_next_run_creates_a_missing_export(run: Run, dsn: str, values: Values, tmp_path: Path) -> None:
    write_corpus(tmp_path, 6, seed=5)
    assert run(tmp_path, "--no-search").json["delivered"] is None
    with psycopg.connect(dsn) as conn:
        assert one(conn, "select count(*) from pgcombine.export") == 0
    run(tmp_path)
    assert table(dsn) == values() == expected(tmp_path)


@pytest.mark.slow
def test_search_table_moves_between_databases(
    run: Run, dsn: str, there: str, conn: psycopg.Connection, values: Values, tmp_path: Path
) -> None:
    write_corpus(tmp_path, 6, seed=6)
    figures = run(tmp_path, "--search-dsn", there).json
    assert figures["delivered"] == figures["phrases"]
    edit_corpus(tmp_path, random.Random(7))
    run(tmp_path, "--search-dsn", there)
    assert table(there) == values() == expected(tmp_path)
    password = psycopg.conninfo.conninfo_to_dict(there).get("password")
    assert password is None or str(password) not in one(conn, "select target from pgcombine.export")
    # back to the first database
    edit_corpus(tmp_path, random.Random(8))
    run(tmp_path, "--search-dsn", dsn)
    run(tmp_path)
    assert table(dsn) == values() == expected(tmp_path)
    assert table(there) != values()
    # and again to the other database, which must lose the phrases deleted meanwhile
    for path in list(tmp_path.glob("*.txt")):
        path.unlink()
    run(tmp_path, "--search-dsn", there)
    assert table(there) == values() == expected(tmp_path)


def test_database_with_another_search_table_is_refused(
    run: Run, there: str, conn: psycopg.Connection, tmp_path: Path
) -> None:
    with psycopg.connect(there, autocommit=True) as other:
        other.execute("create schema pgcombine")
        other.execute("create table pgcombine.phrases_search_exports ()")
    (tmp_path / "a").write_text("one two three four")
    answer = run(tmp_path, "--search-dsn", there)
    assert answer.code == 1
    assert "has its own search table (give --search-dsn another database" in answer.stderr
    assert one(conn, "select count(*) from pgcombine.phrases_values") == 1


def test_paused_export_is_left_alone(run: Run, conn: psycopg.Connection, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one two three four")
    run(tmp_path)
    conn.execute("select pgcombine.pause_export('phrases_search')")
    (tmp_path / "b").write_text("five six seven eight")
    answer = run(tmp_path)
    assert answer.stderr == "the search table is paused (pgcombine export resume phrases_search); waiting entries: 1\n"
    assert (answer.json["delivered"], waiting(conn)) == (0, 1)


def test_find_searches_phrases(run: Run, conn: psycopg.Connection, tmp_path: Path) -> None:
    nothing = run("--find", "white whale")
    assert nothing.code == 1
    assert nothing.stderr == "pgcombine: there is no search table yet: run 'pgcombine phrasecount DIR' first\n"

    (tmp_path / "a").write_text("the White Whale swims, the white whale swims. whale_white")
    (tmp_path / "b").write_text("snow white whales are the white whale swims")
    run(tmp_path)
    found = run("--find", "White, WHALE!").json
    assert found[0] == {"phrase": "the white whale swims", "docs": 2, "total": 3}
    assert all(" white whale " in f" {row['phrase']} " for row in found)
    assert len(found) == 5
    assert len(run("--find", "white whale", "--top", 2).json) == 2
    assert run("--find", "whale white whale").json == []

    (tmp_path / "a").unlink()
    run(tmp_path)
    assert run("--find", "the white whale").json == [
        {"phrase": "are the white whale", "docs": 1, "total": 1},
        {"phrase": "the white whale swims", "docs": 1, "total": 1},
    ]
    assert run("--find", "?!").stderr == "pgcombine: there is no word in '?!': give one to four words\n"


def test_another_export_of_that_name_is_refused(run: Run, conn: psycopg.Connection, tmp_path: Path) -> None:
    conn.execute("select pgcombine.create_queue('wc', array['word text'], array['n bigint sum'])")
    conn.execute("select pgcombine.create_export('phrases_search', queue => 'wc')")
    (tmp_path / "a").write_text("one two three four")
    answer = run(tmp_path)
    assert answer.code == 1
    assert answer.stderr.startswith("pgcombine: export \"phrases_search\" is there but isn't phrasecount's: drop it")
