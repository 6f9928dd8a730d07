"""phrasecount is killed with -9 at random moments of a run; the next run must end with the right counts.

Each round edits a corpus, starts a run and a worker on an embedded server, and kills one process: the run, its Java
process, the worker or the server. The moment is random within the time that a run takes. Then the round runs
phrasecount again with ``--verify`` and compares the values, and the search table, with a count in plain Python.
``PGCOMBINE_TEST_CHAOS_SECONDS`` sets the length of the test, which has at least two rounds.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from support import run_cli, start_cli
from support.audit import seconds
from support.phrases import edit_corpus, expected, write_corpus

VICTIMS = ("run", "server", "java", "worker")


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(3900)
def test_next_run_counts_right_after_a_kill(home: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    write_corpus(corpus, 12, seed=1, words=500)
    seed = random.randrange(10**6)
    chance = random.Random(seed)
    env: dict[str, object] = {"PGCOMBINE_HOME": home, "PGCOMBINE_DSN": None}
    figures = run_again(corpus, env)
    # the added second is for the start of Python
    longest = figures["seconds"] - figures["step_seconds"]["verifying"] + 1
    victims: list[str] = []
    until = time.monotonic() + seconds(0)
    while len(victims) < 2 or time.monotonic() < until:
        victim = chance.choice([one for one in VICTIMS if one not in victims[-3:]])
        victims.append(victim)
        sink = () if victim != "java" and chance.random() < 0.3 else ("--sink", "copy")  # without a sink, without Spark
        edit_corpus(corpus, chance)
        with (
            start_cli("worker", "phrases", env=env, stdout=subprocess.DEVNULL) as worker,
            start_cli("phrasecount", corpus, *sink, env=env, stdout=subprocess.DEVNULL) as run,
        ):
            try:
                run.wait(timeout=chance.uniform(0, longest))
            except subprocess.TimeoutExpired:
                kill(victim, run, worker, home)
            run.wait(timeout=300)
        run_again(corpus, env)
        assert stored(env) == (expected(corpus), expected(corpus)), (seed, victims)


def kill(victim: str, run: subprocess.Popen[str], worker: subprocess.Popen[str], home: Path) -> None:
    if victim == "java":
        for child in psutil.Process(run.pid).children(recursive=True):
            if child.name() == "java":
                child.kill()
    elif victim == "server":
        for file in home.rglob("postmaster.pid"):
            os.kill(int(file.read_text().split("\n")[0]), signal.SIGKILL)
    else:
        {"run": run, "worker": worker}[victim].kill()


def run_again(corpus: Path, env: dict[str, object]) -> dict[str, Any]:
    """Run phrasecount with ``--verify`` to its end. Returns its report."""
    done = run_cli("phrasecount", corpus, "--verify", "--json", env=env, timeout=600)
    if done.returncode:
        raise AssertionError(done.stderr)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def stored(env: dict[str, object]) -> tuple[dict[str, tuple[int, int]], ...]:
    """Return the values and the rows of the search table, each by phrase."""
    dsn = run_cli("dsn", env=env).stdout.strip()
    with psycopg.connect(dsn) as conn:
        values = conn.execute("select phrase, docs, total from pgcombine.phrases_values").fetchall()
        search = conn.execute(
            "select phrase, docs, total from phrasecount.search where not pgcombine_deleted"
        ).fetchall()
    return tuple({phrase: (docs, total) for phrase, docs, total in rows} for rows in (values, search))
