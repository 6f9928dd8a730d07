"""The consumer of a contender in SQL: ``python -m tests.programs.peers.consume DSN STATEMENT``.

The statement does a part of the work and returns a count of what it took, such as updates; 0 means nothing. The
consumer repeats the statement ``--pause`` seconds after its end, and after at least 10 ms if the count was 0.
``--vacuum`` names a table to vacuum whenever the counts since the last vacuum reach 200,000.
SIGTERM ends the consumer.
"""

from __future__ import annotations

import argparse
import time

from pgcombine.database.connect import connect

IDLE = 0.01  # seconds
VACUUM_EVERY = 200_000  # the least sum of the statement's counts between two vacuums


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dsn")
    parser.add_argument("statement")
    parser.add_argument("--pause", type=float, default=0.0)
    parser.add_argument("--vacuum", default="")
    options = parser.parse_args()
    statement = options.statement.encode()
    since = 0
    with connect(options.dsn, name="peers consumer") as connection:
        connection.prepare_threshold = 0
        while True:
            row = connection.execute(statement).fetchone()
            taken = int(row[0] or 0) if row else 0
            since += taken
            if options.vacuum and since >= VACUUM_EVERY:
                connection.execute(f"vacuum {options.vacuum}".encode())
                since = 0
            time.sleep(options.pause if taken else max(IDLE, options.pause))


if __name__ == "__main__":
    main()
