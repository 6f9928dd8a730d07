"""Random sessions on a budget, while workers and the server are killed with SIGKILL (``sql/budget/crowd.py``).

``PGCOMBINE_TEST_CHAOS_SECONDS`` sets the length of the run.
"""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest
from support import start_cli
from support.audit import seconds
from support.budgets import make_budget
from support.clusters import started
from support.homes import Filled

from ..sql.budget.crowd import HAPPEN, Crowd

SESSIONS = 16


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_budget_is_right_after_kill_9(filled: Filled, tmp_path: Path) -> None:
    with started("a", filled, tmp_path) as clusters:
        server = clusters["a"]
        with server.connect() as conn:
            make_budget(conn, notify=False)
        crowd = Crowd(lambda: server.direct, seconds(20), [*HAPPEN, "workers killed", "servers killed"])

        def worker_works(chance: random.Random) -> None:
            """Wait until a worker has returned another hold, and a little longer."""
            before = crowd.figures["expired"]
            while not crowd.over and crowd.figures["expired"] == before:
                crowd.wait(0.05)
            crowd.wait(chance.uniform(0, 2))

        def work(chance: random.Random) -> None:
            while not crowd.over:
                with start_cli("worker", "--dsn", server.direct, stdout=subprocess.DEVNULL) as worker:
                    worker_works(chance)
                    worker.kill()
                    crowd.count("workers killed")

        def kill(chance: random.Random) -> None:
            while not crowd.over:
                worker_works(chance)
                server.kill()
                crowd.wait(chance.uniform(0, 0.5))
                server.start()
                crowd.count("servers killed")

        crowd.crowd(SESSIONS, work, kill).succeeded()
