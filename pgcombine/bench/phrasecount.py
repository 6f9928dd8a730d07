"""Compare phrasecount with a plain Spark batch job that makes the same counts, in one run on one machine.

Each measured program is a separate process. Its memory is the highest sampled sum of resident memory over its process
tree (Python, Java, Python workers; not the PostgreSQL server). The database is a throw-away one on the given server.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pgcombine import PgCombineError
from pgcombine.bench.scratch import throwaway_database
from pgcombine.phrasecount.corpus import Corpus
from pgcombine.phrasecount.search import SEARCHING

_SAMPLE_SECONDS = 0.1


@dataclass
class Measured:
    """The figures of one program.

    ``seconds`` includes neither the start of Spark (``session_seconds``) nor the delivery into the search table
    (``search_seconds``). The batch job has no search table.
    """

    documents: int
    updates: int
    phrases: int
    seconds: float
    session_seconds: float
    peak_bytes: int
    search_seconds: float = 0.0
    steps: dict[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the figures, and the rates computed from them."""
        return {
            **vars(self),
            "documents_per_second": round(self.documents / self.seconds, 1),
            "updates_per_second": round(self.updates / self.seconds, 1),
        }


def measure(dsn: str, corpus: Corpus, sink: str | None = None) -> dict[str, dict[str, Any]]:
    """Return the figures of three programs by name.

    ``first`` is a run that counts all files, ``unchanged`` the next run over the same files, and ``batch`` the plain
    Spark job. Raises PgCombineError if a program fails, if the numbers of phrases differ, or if the next run enqueues
    updates.
    """
    with throwaway_database(dsn) as database:
        run = [sys.executable, "-P", "-m", "pgcombine.bench.phrasecount", str(corpus.root), sink or ""]
        first = _phrasecount([*run, *sorted(corpus.exclude)], database)
        unchanged = _phrasecount([*run, *sorted(corpus.exclude)], database)
    with tempfile.TemporaryDirectory(prefix="pgcombine-bench-") as directory:
        command = [sys.executable, "-P", "-m", "pgcombine.phrasecount.batch", str(corpus.root), f"{directory}/counts"]
        figures, peak = _run([*command, *sorted(corpus.exclude)], {})
    session = figures["session_seconds"]
    batch = Measured(first.documents, 0, figures["phrases"], figures["seconds"] - session, session, peak)
    if batch.phrases != first.phrases or unchanged.updates:
        raise PgCombineError(
            f"phrasecount has {first.phrases:,} phrases, the batch job {batch.phrases:,}, and the unchanged run "
            f"enqueued {unchanged.updates:,} updates: was {corpus.root} changed meanwhile? Run again"
        )
    return {"first": first.as_dict(), "unchanged": unchanged.as_dict(), "batch": batch.as_dict()}


def _phrasecount(command: list[str], database: str) -> Measured:
    figures, peak = _run(command, {"PGCOMBINE_DSN": database})
    session, search = figures["session_seconds"], figures["step_seconds"][SEARCHING]
    return Measured(
        documents=figures["documents"],
        updates=figures["updates"],
        phrases=figures["phrases"],
        seconds=figures["seconds"] - session - search,
        session_seconds=session,
        peak_bytes=peak,
        search_seconds=search,
        steps=figures["step_seconds"],
    )


def _run(command: list[str], environment: dict[str, str]) -> tuple[Any, int]:
    """Return the program's output, parsed from JSON, and its peak memory in bytes."""
    import psutil

    peak = 0
    with (
        tempfile.TemporaryFile("w+") as output,
        subprocess.Popen(command, stdout=output, stderr=sys.stderr, env={**os.environ, **environment}) as process,
    ):
        root = psutil.Process(process.pid)
        try:
            while process.poll() is None:
                peak = max(peak, _resident(root))
                time.sleep(_SAMPLE_SECONDS)
        except BaseException:
            process.kill()
            raise
        if process.returncode:
            raise PgCombineError(f"{command[3]} ended with status {process.returncode}")
        output.seek(0)
        return json.load(output), peak


def _resident(root: Any) -> int:
    import psutil

    total = 0
    try:
        for process in [root, *root.children(recursive=True)]:
            try:
                total += process.memory_info().rss
            except psutil.NoSuchProcess:
                continue
    except psutil.NoSuchProcess:
        pass
    return total


def _main(root: str, sink: str, exclude: frozenset[str]) -> None:
    """Run the measured program, which is phrasecount without its command line."""
    from dataclasses import asdict

    from pgcombine.phrasecount.report import Report
    from pgcombine.phrasecount.run import count
    from pgcombine.phrasecount.search import Search

    dsn, corpus = os.environ["PGCOMBINE_DSN"], Corpus(Path(root), exclude=exclude)
    figures = count(dsn, corpus, report=Report(), sink=sink or None, search=Search(dsn))
    print(json.dumps(asdict(figures)))


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2], frozenset(sys.argv[3:]))
