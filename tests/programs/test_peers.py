"""The comparison with peers: exact totals, rules of a fair set-up, ratios, table, plot.

``test_peers_outside`` tests the totals of PgQ, pgmq, pg_ivm and chDB.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from support.servers import Server, embedded_only
from support.wait import eventually

from pgcombine.database.connect import connect

from .peers import __main__ as program
from .peers import budgets, plot, report, run
from .peers.contender import Contender
from .peers.contenders import CONTENDERS
from .peers.load import Ledger, Work, differences
from .peers.manual import BASELINE, SequenceWindow, SortedUpsert
from .peers.measurement import Measurement, rotated
from .peers.measures import FIGURES, Lengths, Metric
from .peers.processor import ServerTime
from .peers.server import OWN, describe
from .peers.source import OF_SOURCE, OfSource
from .peers.turn import Base, base, database

TINY = Lengths(rounds=1, other_rounds=1, window=1, hot=2, open_writer=2, new_transactions=2, aging=0)
DEADLOCKS = "select deadlocks from pg_stat_database where datname = current_database()"
HERE = [name for name, contender in CONTENDERS.items() if contender.__module__.endswith((".manual", ".queues"))]


@pytest.fixture(scope="module")
def copied(server: Server) -> Iterator[Base]:
    with base(server.dsn) as made:
        yield made


class Forgetful(SortedUpsert):
    """A contender whose loads lose each update of an existing key."""

    name = "forgetful"

    def write(self, source: str) -> str:
        return super().write(source).replace("do update set n = t.n + excluded.n", "do nothing")


@pytest.mark.slow
@embedded_only
@pytest.mark.parametrize("name", HERE)
def test_totals_are_exact_by_key(copied: Base, name: str) -> None:
    contender = CONTENDERS[name]
    with database(copied, contender) as turn:
        with turn.consumer():
            turn.warm(2)
            turn.next_window()
            turn.load(Work(10), clients=4, transactions=10)
            turn.load(Work(1, "hot", 0.001), clients=4, transactions=5)
            turn.load(Work(50, "new"), clients=2, transactions=2)
            contender.add(turn.connection, "probe")
            turn.ledger.enter_one("probe")
            turn.settle()
        assert turn.difference() is None
        assert contender.read(turn.connection, "probe") == 1
        assert sum(contender.totals(turn.connection).values()) == 2_000 + 10 * (40 - turn.failed) + 20 + 200 + 1
        assert contender.size(turn.connection) > 0
        # the same durability for all: no unlogged table, no setting of the database
        unlogged = "select count(*) from pg_class where oid = any(%s::regclass[]) and relpersistence <> 'p'"
        assert turn.connection.execute(unlogged, (list(contender.tables),)).fetchone() == (0,)
        own = (
            "select count(*) from pg_db_role_setting "
            "where setdatabase = (select oid from pg_database where datname = current_database())"
        )
        assert turn.connection.execute(own).fetchone() == (0,)


@pytest.mark.slow
@embedded_only
@pytest.mark.parametrize("contender", OF_SOURCE, ids=lambda contender: contender.name)
def test_sums_of_a_table_are_exact_by_key(copied: Base, contender: OfSource) -> None:
    with closing(connect(copied.dsn)) as connection:
        if why := contender.missing(connection):
            pytest.skip(f"{contender.name}: {why}")
    with database(copied, contender) as turn:
        with turn.consumer():
            turn.warm(2)
            turn.load(Work(10), clients=4, transactions=20)
            turn.load(Work(1, "hot", 0.001), clients=4, transactions=20)
            contender.add(turn.connection, "probe")
            turn.settle()
        deleted = "select count(*) from bench.source where number % 10 = 5"
        assert turn.connection.execute(deleted.encode()).fetchone() == (0,)
        assert turn.difference() is None
        assert contender.read(turn.connection, "probe") == 1
        assert contender.size(turn.connection) > 0
        turn.connection.execute("alter table bench.source disable trigger user")
        contender.add(turn.connection, "missed")
        if contender.name != "pg_ivm":
            assert "missed: 0 instead of 1" in str(turn.difference())


@pytest.mark.slow
@embedded_only
def test_lost_updates_are_marked_everywhere(copied: Base, server: Server, tmp_path: Path) -> None:
    contenders: list[Contender] = [SortedUpsert(), Forgetful()]
    turns = list(run.run(copied, contenders, ["end-to-end-100"], TINY))
    assert [turn.error for turn in turns] == [None, None]
    assert {turn.contender: turn.wrong is not None for turn in turns} == {BASELINE: False, "forgetful": True}
    found = store(server, contenders, turns)
    assert report.wrong(found, "forgetful")
    assert "| forgetful ✗ |" in squeezed(report.table(found))
    assert "wrong: forgetful, end-to-end-100, round 1: " in report.table(found)
    assert next(line.ratio for line in report.lines(found, "end-to-end-100", Metric("rate", "", True))) == 1
    kept = tmp_path / "run.json"
    kept.write_text(json.dumps(found))
    assert program.main(["--show", str(kept), "--plot", str(tmp_path / "run.png")]) == 1
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@embedded_only
def test_run_goes_on_after_an_error(copied: Base) -> None:
    class Broken(SortedUpsert):
        name = "broken"

        def write(self, source: str) -> str:
            return "select 1 / 0;\n"

    broken, sound = run.run(copied, [Broken(), SortedUpsert()], ["hot-8"], TINY)
    assert broken.error is not None
    assert broken.error.startswith("PgCombineError: pgbench failed (status 2): ")
    assert sound.values["rate"] > 0


@embedded_only
def test_window_waits_for_open_writers(copied: Base) -> None:
    """A row counts even if a row with a greater sequence number was committed before it."""
    contender = SequenceWindow()
    with (
        database(copied, contender) as turn,
        closing(connect(turn.dsn, name="open", autocommit=False)) as open_writer,
        closing(connect(turn.dsn, name="roll up")) as consumer,
        ThreadPoolExecutor(1) as pool,
    ):
        contender.add(open_writer, "early")  # begins a transaction
        contender.add(turn.connection, "late")
        rolling = pool.submit(consumer.execute, "select bench.roll_up()")
        waits = "select count(*) from pg_locks where not granted and mode = 'ShareRowExclusiveLock'"
        while turn.connection.execute(waits).fetchone() == (0,):
            assert not rolling.done()
        assert not contender.settled(turn.connection)
        open_writer.commit()
        assert rolling.result(60).fetchone() == (2,)
        assert contender.settled(turn.connection)
        assert contender.totals(turn.connection) == {"early": 1, "late": 1}


@embedded_only
def test_deadlocks_are_counted(copied: Base) -> None:
    """Two sessions lock two keys in different orders."""
    contender = SortedUpsert()
    with (
        database(copied, contender) as turn,
        closing(connect(turn.dsn, name="a", autocommit=False)) as a,
        closing(connect(turn.dsn, name="b", autocommit=False)) as b,
        ThreadPoolExecutor(1) as pool,
    ):
        contender.add(a, "x")
        contender.add(b, "y")
        meeting = pool.submit(contender.add, a, "y")
        deadlock = None
        try:
            contender.add(b, "x")
        except psycopg.errors.DeadlockDetected as error:
            deadlock = error
            b.rollback()
        deadlock = deadlock or meeting.exception()
        assert isinstance(deadlock, psycopg.errors.DeadlockDetected)
        a.close()
        b.close()
        eventually(lambda: turn.connection.execute(DEADLOCKS).fetchone() == (1,))
        first, second = (Measurement("", contender.name, number) for number in range(2))
        turn.judge(first)
        turn.judge(second)
        assert (first.deadlocks, second.deadlocks) == (1, 0)


@embedded_only
def test_checkpoint_in_a_window_is_reported(copied: Base) -> None:
    with database(copied, SortedUpsert()) as turn:
        with turn.used() as used:
            turn.load(Work(10), clients=1, transactions=3)
        assert (used.checkpoint, turn.checkpoint) == (False, False)
        assert used.log > 0
        with turn.used() as used:
            turn.connection.execute("checkpoint")
        assert used.checkpoint
        assert turn.checkpoint


@embedded_only
def test_time_of_ended_sessions_counts(server: Server) -> None:
    with closing(connect(server.dsn)) as observer, ServerTime(observer) as used:
        with closing(connect(server.dsn)) as other:
            pid = other.info.backend_pid
            other.execute("select count(*) from generate_series(1, 1500000)")
        gone = "select count(*) from pg_stat_activity where pid = %s"
        while observer.execute(gone, (pid,)).fetchone() != (0,):
            pass
    assert used.seconds > 0


def test_started_server_is_durable() -> None:
    assert {OWN[name] for name in ("synchronous_commit", "fsync", "full_page_writes")} == {"on"}


def test_every_contender_comes_first_once() -> None:
    some = [CONTENDERS[name] for name in HERE[:4]]
    assert {rotated(some, number)[0] for number in range(4)} == set(some)
    assert all(set(rotated(some, number)) == set(some) for number in range(4))


def test_ledger_reports_differences() -> None:
    ledger = Ledger(["a", "b", "a", "c"] + ["d"] * 499_996)
    ledger.enter(Work(3), [(0, 0)])  # this transaction wrote the first three words
    ledger.enter(Work(1, "hot"), [(0, 1), (5, 1)])
    assert ledger.totals() == {"a": 2, "b": 1, "hot": 2}
    assert differences(ledger.totals(), {"a": 2, "b": 1, "hot": 2}) is None
    assert differences(ledger.totals(), {"a": 2, "hot": 1, "z": 1}) == (
        "3 keys have wrong totals; b: 0 instead of 1; all: 4 instead of 5"
    )


def test_ratios_compare_within_a_round() -> None:
    def turn(contender: str, number: int, rate: float) -> Measurement:
        return Measurement("hot-8", contender, number, {"rate": rate})

    turns = [
        *(turn(BASELINE, number, rate) for number, rate in enumerate((100, 50, 200))),
        *(turn("other", number, rate) for number, rate in enumerate((200, 150, 200))),
        turn("other", 3, 9),  # a round in which the baseline failed
    ]
    found = report.stored({}, {BASELINE: "", "other": ""}, {}, turns)
    base_line, other = report.lines(found, "hot-8", FIGURES["hot-8"].metrics[0])
    assert (base_line.value, base_line.ratio) == (100, 1)
    assert (other.value, other.ratio, other.least, other.greatest, other.rounds) == (175, 2, 1, 3, 4)
    table = squeezed(
        report.table(found | {"run": {"version": "", "commit": "", "cores": 2, "load_average": [0]} | EMPTY})
    )
    assert "| sorted upsert | 100 |" in table
    assert "| other | 175 (2.00; 1.00-3.00) |" in table
    better = plot.turned(other, Metric("p50", "ms", False))
    assert (better.ratio, better.least, better.greatest) == (1 / 2, 1 / 3, 1)


def test_runs_are_compared_by_their_spreads() -> None:
    def run(ratio: float) -> report.Stored:
        return report.stored(
            {},
            {BASELINE: "", "steady": "", "other": ""},
            {},
            [
                Measurement("hot-8", contender, number, {"rate": rate * (1 + number / 10)})
                for contender, rate in ((BASELINE, 100.0), ("steady", 200.0 + ratio), ("other", 100 * ratio))
                for number in range(2)
            ]
            # a third round widens the spread of "steady"
            + [Measurement("hot-8", "steady", 2, {"rate": 9.0}), Measurement("hot-8", BASELINE, 2, {"rate": 4.0})],
        )

    assert report.apart(run(3), run(3)) == ["2 ratios compared, the spreads of 0 don't overlap"]
    first, *those = report.apart(run(3), run(2))
    assert first == "2 ratios compared, the spreads of 1 don't overlap"
    assert [text.split(": ")[1] for text in those] == ["other"]


EMPTY: dict[str, object] = {"settings": {}, "lengths": {"rounds": 3}}


def store(server: Server, contenders: list[Contender], turns: list[Measurement]) -> report.Stored:
    about = describe(server.dsn) | {"lengths": vars(TINY)}
    summaries = {one.name: one.summary for one in contenders}
    return json.loads(json.dumps(report.stored(about, summaries, {"another": "isn't installed"}, turns)))


def squeezed(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_program_measures_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program starts a server, and measures pgcombine, the baseline and a sequence window."""
    monkeypatch.setattr(program, "QUICK", TINY)
    kept, drawn = tmp_path / "run.json", tmp_path / "run.png"
    figures = ["end-to-end-10", "freshness"]
    chosen = ["--contender", "pgcombine, 4 buckets", "--contender", SequenceWindow.name]
    chosen += [word for name in figures for word in ("--figure", name)]
    assert program.main(["--quick", *chosen, "--json", str(kept), "--plot", str(drawn)]) == 0
    found = json.loads(kept.read_text())
    assert [one for one in found["measurements"] if one["error"] or one["checkpoint"]] == []
    assert {one["figure"] for one in found["measurements"]} == set(figures)
    for one in found["measurements"]:
        metrics = {metric.name for metric in FIGURES[one["figure"]].metrics}
        values = one["values"]
        assert values.keys() == metrics - CONTENDERS[one["contender"]].unmeasured
        if "clients" in values:  # the parts are measured separately, and their sum is the whole
            assert values["processor"] == pytest.approx(values["server"] + values["consumer"] + values["clients"])
    assert drawn.exists()


@pytest.mark.slow
@embedded_only
def test_budgets_are_measured_beside_peers(
    server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody takes more than there is. The program itself compares what is left with what was taken."""
    monkeypatch.setattr(budgets, "EACH", 10)
    monkeypatch.setattr(budgets, "LIMIT", 240)
    with server.database() as dsn:
        assert budgets.main(["--dsn", dsn, "--rounds", "1", "--figure", "budget-runs-out"]) == 0
    rows = [line.split("|")[1:-1] for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    wrong = {name.strip(): tuple(float(cell.split()[0]) for cell in cells[-2:]) for name, *cells in rows[1:]}
    assert {contender.name for contender in budgets.CONTENDERS} <= wrong.keys()
    assert {over for over, _ in wrong.values()} == {0}
    assert [wrong[name] for name in ("row update", "select for update", "budget")] == [(0, 0)] * 3
