"""Servers that run until the end of the session. Each test gets a new database on each server that it uses.

``pgcombine/docs/several-servers.md`` explains the terms of the tests in this folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from support.clusters import Cluster
from support.homes import Filled

from pgcombine import ReplicatedQueue

_numbers = count(1)


def remember_passwords(pool: dict[str, Cluster]) -> None:
    """Write a password file for replayers, since registered addresses hold no passwords."""
    lines = [f"127.0.0.1:{one.proxy.port}:*:{one.user}:{one.password}\n" for one in pool.values()]
    file = Path(os.environ["PGPASSFILE"])
    file.write_text("".join(lines), encoding="utf-8")
    file.chmod(0o600)


@pytest.fixture(scope="session")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Cluster]]:
    """The servers that tests have started, by name. They run until the end of the session."""
    started: dict[str, Cluster] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGPASSFILE", str(tmp_path_factory.mktemp("pass") / "pgpass"))
        try:
            yield started
        finally:
            for cluster in started.values():
                cluster.close()


@pytest.fixture
def clusters(
    request: pytest.FixtureRequest, pool: dict[str, Cluster], memory: Path, filled: Filled
) -> dict[str, Cluster]:
    """Servers a, b, c, or those that the mark ``servers`` names. Each has an empty queue ``wc`` in a new database."""
    mark = request.node.get_closest_marker("servers")
    names = mark.args[0] if mark else "abc"
    for name in names:
        if name not in pool:
            pool[name] = Cluster(name, filled(memory / f"server-{name}"))
            remember_passwords(pool)
    database = f"handoff_{next(_numbers)}"
    chosen = {name: pool[name] for name in names}
    for cluster in chosen.values():
        cluster.fresh(database)
    return chosen  # databases aren't dropped, since each drop takes a checkpoint


@pytest.fixture
def queue(clusters: dict[str, Cluster]) -> Iterator[ReplicatedQueue]:
    """The queue ``wc`` on all servers."""
    with ReplicatedQueue({name: one.dsn for name, one in clusters.items()}, "wc", timeout=4.0) as queue:
        yield queue
