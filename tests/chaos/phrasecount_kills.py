"""Kill a process with -9 at a random moment of a phrasecount run; the next run must end with the right counts.

``python -m tests.chaos.phrasecount_kills --rounds 20 [DIR]`` copies DIR, or makes a small corpus. Each round edits the
copy or the small corpus, starts a run and a worker on an embedded server, and kills one process: the run, its Java
process, the worker or the server. The moment is random within the time that a run takes. Then the round runs
phrasecount again with ``--verify`` and compares the values, and the search table, with a count in plain Python. The
program prints its seed and each round as lines of JSON, and ends with status 1 at the first wrong round.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import psutil
import psycopg

sys.path.insert(0, str(Path(__file__).parents[1]))

from support import run_cli, start_cli
from support.phrases import edit_corpus, expected, write_corpus

VICTIMS = ("run", "server", "java", "worker")


@dataclass
class Round:
    """One round. ``victim`` was killed ``seconds`` after the start of the run, unless the run had ended before.

    ``interrupted`` tells whether the run failed. ``updates`` counts the updates that the next run had to add.
    """

    number: int
    victim: str
    seconds: float
    interrupted: bool
    updates: int
    phrases: int
    right: bool


def rounds(corpus: Path, home: Path, count: int, seed: int) -> Iterator[Round]:
    """Run ``count`` rounds, and yield each. Rounds edit ``corpus``; ``home`` is the embedded server's directory."""
    chance = random.Random(seed)
    env = {"PGCOMBINE_HOME": home, "PGCOMBINE_DSN": None}
    figures = run_again(corpus, env)
    # the added second is for the start of Python
    longest = figures["seconds"] - figures["step_seconds"]["verifying"] + 1
    for number, victim in enumerate(islice(cycle(chance.sample(VICTIMS, len(VICTIMS))), count), start=1):
        edit_corpus(corpus, chance)
        seconds = chance.uniform(0, longest)
        with (
            start_cli("worker", "phrases", env=env, stdout=subprocess.DEVNULL) as worker,
            start_cli("phrasecount", corpus, env=env, stdout=subprocess.DEVNULL) as run,
        ):
            started = time.monotonic()
            try:
                run.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                kill(victim, run, worker, home)
            seconds = time.monotonic() - started
            status = run.wait(timeout=300)
        figures = run_again(corpus, env)
        yield Round(
            number,
            victim,
            round(seconds, 2),
            status != 0,
            figures["updates"],
            figures["phrases"],
            stored(env) == (expected(corpus), expected(corpus)),
        )


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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", metavar="DIR", nargs="?", type=Path)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    arguments = parser.parse_args()
    # after SIGTERM, too, the blocks below stop the server and remove the files
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="phrasecount-kills-") as directory:
        corpus, home = Path(directory, "corpus"), Path(directory, "home")
        if arguments.directory:
            shutil.copytree(arguments.directory, corpus)
            for path in [corpus, *corpus.rglob("*")]:
                path.chmod(0o755 if path.is_dir() else 0o644)
        else:
            write_corpus(corpus, 40, seed=1, words=2000)
        print(json.dumps({"seed": arguments.seed}), flush=True)
        try:
            for one in rounds(corpus, home, arguments.rounds, arguments.seed):
                print(json.dumps(asdict(one)), flush=True)
                if not one.right:
                    return 1
        finally:
            run_cli("server", "stop", env={"PGCOMBINE_HOME": home})
    return 0


if __name__ == "__main__":
    sys.exit(main())
