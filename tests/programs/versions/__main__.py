"""``python -m tests.programs.versions COMMIT…``: measure versions of the product in turn; ratios are to the first one.

``.`` is the working tree. A server of PostgreSQL 18 is started in a temporary directory. ``--dsn`` measures on another,
idle server as its superuser. ``--figure`` chooses figures. ``--rounds`` and ``--seconds`` set how often and how long to
measure, and ``--max-delay`` how long updates may wait, in versions with that option. ``--json FILE`` stores the run,
and ``--show FILE`` prints a stored run. Ctrl-C ends the measurements; the table then has the turns measured until then.
``tests/programs/versions/__init__.py`` explains the table. The status is 1 if totals were wrong or a turn failed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, nullcontext
from pathlib import Path
from typing import Any

from pgcombine.bench.scratch import SAMPLE, zipf

from ..checkout import Environment, install, names
from ..peers import report, server
from ..peers.measurement import Measurement, kept
from ..peers.measures import Figure, Lengths
from ..peers.turn import KEYS, SKEW, Base, database
from .figures import FIGURES
from .version import Version, base, owner, reclaimed, stranger


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commits", nargs="*", metavar="COMMIT")
    parser.add_argument("--figure", action="append", choices=FIGURES, default=[])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5, help="of a measured window; default: 5")
    parser.add_argument("--buckets", type=int, default=4)
    parser.add_argument("--max-delay", type=float, metavar="SECONDS")
    parser.add_argument("--deleting", action="store_true", help="hide a session's snapshots from the worker")
    parser.add_argument("--dsn")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--show", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    if bool(options.show) == bool(options.commits):
        parser.error("give commits, or --show FILE")
    found = json.loads(options.show.read_text()) if options.show else measured(options)
    print(report.table(found, FIGURES), *reclaiming(found), sep="\n")
    if options.json and not options.show:
        options.json.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    return int(any(one["wrong"] or one["error"] for one in found["measurements"]))


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """Measure the chosen figures. Prints a line for each turn to standard error."""
    lengths = Lengths(rounds=options.rounds, other_rounds=options.rounds, window=options.seconds)
    figures = [figure for name, figure in FIGURES.items() if name in options.figure or not options.figure]
    began = time.monotonic()
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pgcombine-versions-")))
        environments = [
            install(commit, name, home / f"version{number}")
            for number, (commit, name) in enumerate(zip(options.commits, names(options.commits), strict=True))
        ]
        dsn = stack.enter_context(nullcontext(options.dsn) if options.dsn else server.own(18))
        chosen = ("rounds", "seconds", "buckets", "max_delay", "deleting")
        described = server.describe(dsn) | {"lengths": {name: vars(options)[name] for name in chosen}}
        own = stack.enter_context(owner(dsn, reads_statistics=not options.deleting))
        words = list(zipf(SAMPLE, KEYS, SKEW))
        bases = [(one, stack.enter_context(base(dsn, own, one, words))) for one in environments]
        measurements = []
        try:
            for one in turns(bases, figures, lengths, options):
                measurements.append(one)
                print(f"{time.monotonic() - began:5.0f} s {_line(one)}", file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            print("stopped before the end", file=sys.stderr)
            described["stopped"] = True
    described["seconds"] = round(time.monotonic() - began)
    summaries = {one.name: one.summary for one in environments}
    return report.stored(described, summaries, {}, measurements, FIGURES, environments[0].name)


def turns(
    bases: Sequence[tuple[Environment, Base]], figures: Sequence[Figure], lengths: Lengths, options: argparse.Namespace
) -> Iterator[Measurement]:
    """Measure the figures, each version in turn. Yields the measurement of each turn."""
    peaks: dict[str, float] = {}
    for figure in figures:
        assert figure.measure is not None
        buckets = 1 if figure.name.startswith("pass") else options.buckets
        for number in range(lengths.rounds):
            first = number % len(bases)
            for environment, copied in [*bases[first:], *bases[:first]]:
                found = Measurement(figure.name, environment.name, number)
                version = Version(environment, buckets, options.max_delay)
                with kept(found), ExitStack() as stack:
                    turn = stack.enter_context(database(copied, version))
                    if options.deleting:
                        stack.enter_context(closing(stranger(turn, copied)))
                    found.values = figure.measure(turn, lengths, peaks)
                    version.combine(turn.connection)
                    found.note = reclaimed(turn.connection)
                    turn.judge(found)
                yield found


def reclaiming(run: report.Stored) -> Iterator[str]:
    """Yield for each version its description, and a line for each way in which its log was reclaimed.

    Such a line names the figures, each with the number of its turns.
    """
    for name, summary in run["contenders"].items():
        yield f"\n{name}: {summary}"
        figures: dict[str, Counter[str]] = defaultdict(Counter)
        for one in run["measurements"]:
            if one["contender"] == name:
                figures[re.sub(r" \(.*?\)|; [^;]* left$", "", one["note"]) or "unknown"][one["figure"]] += 1
        for way, turns_of in figures.items():
            yield f"  log: {way}: {', '.join(f'{figure} ({count})' for figure, count in turns_of.items())}"


def _line(one: Measurement) -> str:
    values = ", ".join(f"{name} {report.number(value)}" for name, value in one.values.items())
    marks = " ".join(filter(None, (one.wrong and f"WRONG: {one.wrong}", one.error)))
    return f"{one.figure} {one.round + 1} {one.contender}: {values}; log: {one.note} {marks}"


if __name__ == "__main__":
    sys.exit(main())
