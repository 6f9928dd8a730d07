"""``python -m tests.programs.soak --minutes 30``: a run, its report as JSON, and its charts as PNG.

``--out`` is the directory for ``soak.json``, ``soak.png`` and the daemons' logs. The program prints the report without
its series of samples and delays. Its status is 1 if the list ``wrong`` in the report isn't empty. The run starts two
servers, whose files are in /dev/shm if that has room.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from support import homes
from support.clusters import started

from . import charts
from .run import printed, run


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--gap", type=float, default=20.0, help="mean seconds between two kills")
    parser.add_argument("--out", type=Path, default=Path("artifacts/soak"))
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    memory = homes.MEMORY if homes.fits(homes.MEMORY) else None
    with tempfile.TemporaryDirectory(prefix="soak-", dir=memory, ignore_cleanup_errors=True) as directory:
        home = Path(directory)
        homes.make(home / "filled")
        with started("ab", partial(homes.copy, home / "filled"), home) as servers:
            report = run(servers, options.out, options.minutes, options.gap, options.seed)
    (options.out / "soak.json").write_text(json.dumps(report, default=float, indent=1) + "\n")
    charts.draw(report, options.out / "soak.png")
    print(printed(report))
    return int(bool(report["wrong"]))


if __name__ == "__main__":
    sys.exit(main())
