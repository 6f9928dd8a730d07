"""``python -m tests.programs.peers``: measure contenders and print a table; ``--json`` and ``--plot`` store the run.

``--quick`` takes about ten minutes, a whole run about an hour. ``--server 18`` (the default) and ``--server 15`` start
a server in a temporary directory, and ``--dsn`` measures on another, idle server as its superuser. ``--figure`` and
``--contender`` choose figures and contenders; sorted upserts are always measured. ``--show FILE`` shows a stored run
instead of a new one, and ``--compare FILE`` lists differences from a stored run. Ctrl-C during the turns ends the run
early, and the results so far are shown and stored. The status is 1 if a contender's totals were wrong.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
import time
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from . import report, server
from .contenders import CONTENDERS, PGMQ
from .manual import BASELINE
from .measurement import Measurement
from .measures import FIGURES, FULL, QUICK
from .run import missing, planned, run
from .turn import base


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--server", type=int, choices=server.VERSIONS, default=server.VERSIONS[0])
    parser.add_argument("--dsn")
    parser.add_argument("--figure", action="append", choices=FIGURES, default=[])
    parser.add_argument("--contender", action="append", choices=CONTENDERS, default=[])
    parser.add_argument("--pgmq", type=Path, metavar="FILE", help="pgmq's SQL, pgmq.sql in its repository")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--plot", type=Path, metavar="FILE.png")
    parser.add_argument("--show", type=Path, metavar="FILE")
    parser.add_argument(
        "--compare", type=Path, metavar="FILE", help="a stored run; lists the ratios whose spreads don't overlap"
    )
    options = parser.parse_args(arguments)
    PGMQ.file = options.pgmq
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    if options.show:
        found = json.loads(options.show.read_text())
    else:
        with nullcontext(options.dsn) if options.dsn else server.own(options.server) as dsn:
            found = measured(dsn, options)
    print(report.table(found))
    if options.compare:
        print("", *report.apart(found, json.loads(options.compare.read_text())), sep="\n")
    if options.json and not options.show:
        options.json.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    if options.plot:
        from . import plot

        plot.draw(found, options.plot)
    return int(any(report.wrong(found, name) for name in found["contenders"]))


def measured(dsn: str, options: argparse.Namespace) -> dict[str, Any]:
    """Measure the chosen figures on a server. Prints the plan and a line for each turn to standard error."""
    lengths = QUICK if options.quick else FULL
    chosen = [
        one for name, one in CONTENDERS.items() if name in {*options.contender, BASELINE} or not options.contender
    ]
    figures = [name for name in FIGURES if name in options.figure or not options.figure]
    skipped = missing(dsn, chosen)
    there = [one for one in chosen if one.name not in skipped]
    described = server.describe(dsn) | {"lengths": asdict(lengths), "figures": figures}
    print(f"{described['version']}, {described['cores']} cores, load {described['load_average']}", file=sys.stderr)
    total = 0.0
    for name in figures:
        turns, seconds = planned(there, FIGURES[name], lengths)
        total += seconds
        print(f"{turns:4} turns, about {seconds:4.0f} s: {FIGURES[name].title}", file=sys.stderr)
    print(f"about {total / 60:.0f} minutes", file=sys.stderr, flush=True)
    measurements = []
    began = time.monotonic()
    try:
        with base(dsn) as copied:
            for one in run(copied, there, figures, lengths):
                measurements.append(one)
                print(f"{time.monotonic() - began:5.0f} s {_line(one)}", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print("stopped before the end", file=sys.stderr)
        described["stopped"] = True
    described["seconds"] = round(time.monotonic() - began)
    return report.stored(described, {one.name: one.summary for one in chosen}, skipped, measurements)


def _line(one: Measurement) -> str:
    values = ", ".join(f"{name} {report.number(value)}" for name, value in one.values.items())
    marks = " ".join(filter(None, (one.wrong and f"WRONG: {one.wrong}", one.error)))
    return f"{one.figure} {one.round + 1} {one.contender}: {values} {marks}"


if __name__ == "__main__":
    sys.exit(main())
