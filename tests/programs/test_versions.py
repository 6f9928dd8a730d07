"""The comparison of versions: its output, exact totals, how the log was reclaimed, ratios."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.needs import require_program
from support.queues import lose
from support.servers import Server, embedded_only

from pgcombine.bench.scratch import QUEUE
from pgcombine.database.connect import Connection

from .checkout import WORKING_TREE, check_out, names
from .peers import report
from .peers.contender import ROOT
from .peers.measurement import Measurement
from .versions import __main__ as program
from .versions import sessions
from .versions.figures import FIGURES
from .versions.version import create, reclaimed


@pytest.mark.slow
@pytest.mark.timeout(1800)
@embedded_only
def test_working_tree_is_measured_twice(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "run.json"
    figures = ("end-to-end-10", "statement-10", "idle", "share-10", "session-log")
    chosen = [option for figure in figures for option in ("--figure", figure)]
    options = ["--rounds", "1", "--seconds", "1", "--dsn", server.dsn, "--json", str(kept), *chosen]
    status = program.main([WORKING_TREE, WORKING_TREE, *options])
    printed = capsys.readouterr().out
    found = json.loads(kept.read_text())
    assert [one for one in found["measurements"] if one["wrong"] or one["error"]] == []
    assert status == 0
    assert {(one["figure"], one["contender"]) for one in found["measurements"]} == {
        (figure, name) for figure in figures for name in (".", ". again")
    }
    for one in found["measurements"]:
        assert one["values"].keys() == {metric.name for metric in FIGURES[one["figure"]].metrics}
        assert one["note"].startswith(("truncating (", "deleting (", "nothing yet; the owner has pg_read_all_stats; "))
    assert "\n.: the working tree at " in printed
    assert printed.count("\n  log: ") >= 2
    assert program.main(["--show", str(kept)]) == 0
    assert capsys.readouterr().out == printed


@pytest.mark.slow
@pytest.mark.timeout(600)
@embedded_only
@pytest.mark.parametrize(
    ("options", "right", "way"), [([], "has", "truncating"), (["--deleting"], "lacks", "deleting")]
)
def test_report_names_how_the_log_was_reclaimed(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], right: str, way: str
) -> None:
    """The status 0 also shows that each pass took as many updates as were pending."""
    monkeypatch.setattr(sessions, "PASSES", {1: 2, 100: 2})
    monkeypatch.setattr(sessions, "KEYS", 20_000)
    monkeypatch.setattr(sessions, "EMPTY", 0.1)
    kept = tmp_path / "run.json"
    chosen = ["--rounds", "1", "--figure", "pass", "--dsn", server.dsn, "--json", str(kept)]
    assert program.main([WORKING_TREE, *chosen, *options]) == 0
    (one,) = json.loads(kept.read_text())["measurements"]
    assert re.match(rf"{way} \(.*\); the owner {right} pg_read_all_stats; ", one["note"])


def test_tables_show_how_they_were_reclaimed(conn: Connection) -> None:
    create(conn, QUEUE, 1)
    segments = [
        str(name)
        for (name,) in conn.execute(
            "select relid::regclass from pg_partition_tree('pgcombine.bench_updates') where isleaf"
        ).fetchall()
    ]
    assert reclaimed(conn).startswith("nothing yet; the owner has pg_read_all_stats; ")
    conn.execute(f"truncate {segments[0]}".encode())
    assert reclaimed(conn).startswith(f"truncating (1 of {len(segments)} tables); ")
    conn.execute("insert into pgcombine.bench_updates (word, n) select 'a', 1 from generate_series(1, 5)")
    lose(conn, queue="bench")
    assert reclaimed(conn).startswith(f"truncating (1 of {len(segments)} tables) and deleting (5 rows); ")


def test_ratios_compare_with_the_first_version() -> None:
    def turn(version: str, number: int, rate: float) -> Measurement:
        return Measurement(
            "end-to-end-1", version, number, {"rate": rate}, note=f"deleting ({number} rows); 1.0 MB left"
        )

    turns = [
        *(turn("old", number, rate) for number, rate in enumerate((100, 50, 200))),
        *(turn("new", number, rate) for number, rate in enumerate((200, 150, 200))),
    ]
    found = report.stored({}, {"old": "the old one", "new": "the new one"}, {}, turns, FIGURES, "old")
    old, new = report.lines(found, "end-to-end-1", FIGURES["end-to-end-1"].metrics[0])
    assert (old.value, old.ratio, old.least, old.greatest) == (100, 1, 1, 1)
    assert (new.value, new.ratio, new.least, new.greatest) == (200, 2, 1, 3)
    about = {"version": "", "commit": "", "cores": 2, "load_average": [0], "settings": {}, "lengths": {}}
    table = " ".join(report.table(found | {"run": about}, FIGURES).split())
    assert "median (ratio to old in the same round" in table
    assert "| old | 100 |" in table
    assert "| new | 200 (2.00; 1.00-3.00) |" in table
    assert [*program.reclaiming(found)] == [
        "\nold: the old one",
        "  log: deleting: end-to-end-1 (3)",
        "\nnew: the new one",
        "  log: deleting: end-to-end-1 (3)",
    ]


def test_commit_may_be_given_twice() -> None:
    assert names(["a", ".", "a", ".", "a"]) == ["a", ".", "a again", ". again", "a again again"]


def test_working_tree_is_copied_unchanged(tmp_path: Path) -> None:
    require_program("git")
    assert check_out(WORKING_TREE, tmp_path / "tree").startswith("the working tree at ")
    here = Path(__file__).relative_to(ROOT)
    assert (tmp_path / "tree" / here).read_bytes() == (ROOT / here).read_bytes()
    assert not (tmp_path / "tree" / ".git").exists()
