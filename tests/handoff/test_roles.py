"""Granted rights suffice for writers and replayers that own nothing. An error names a missing right."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from support.clusters import Clusters, agreed, figures, hints
from support.queues import one
from support.wait import eventually

from pgcombine import Replayer, ReplicatedQueue
from pgcombine.errors import UnavailableError

ROLE, PASSWORD = "pgcombine_app", "not-secret-either"


def as_role(dsn: str) -> str:
    parts = urlsplit(dsn)
    return parts._replace(netloc=f"{ROLE}:{PASSWORD}@{parts.hostname}:{parts.port}").geturl()


@pytest.fixture
def roles(clusters: Clusters) -> Iterator[Clusters]:
    """On each server, make a role without rights, whose password libpq finds in the password file."""
    file = Path(os.environ["PGPASSFILE"])
    before = file.read_text(encoding="utf-8")
    lines = [f"127.0.0.1:{cluster.proxy.port}:*:{ROLE}:{PASSWORD}\n" for cluster in clusters.values()]
    file.write_text("".join(lines) + before, encoding="utf-8")
    for cluster in clusters.values():
        with cluster.connect() as conn:
            if not one(conn, "select count(*) from pg_roles where rolname = %s", ROLE):
                conn.execute(f"create role {ROLE} login password '{PASSWORD}'")
    yield clusters
    file.write_text(before, encoding="utf-8")
    for cluster in clusters.values():
        cluster.execute(f"drop owned by {ROLE}")


def grant(clusters: Clusters) -> None:
    for cluster in clusters.values():
        with cluster.connect() as conn:
            conn.execute("select pgcombine.grant_right('handoff', %s, 'wc')", (ROLE,))
            conn.execute("select pgcombine.grant_right('work', %s)", (ROLE,))
            conn.execute(f"grant select on pgcombine.wc_current to {ROLE}")


def introduce(clusters: Clusters) -> None:
    """As the owner, set each server's name and register the other servers there."""
    for name, cluster in clusters.items():
        with cluster.connect() as conn:
            conn.execute("select pgcombine_internal.handoff_identify(%s)", (name,))
            for other in clusters.keys() - {name}:
                parts = urlsplit(as_role(clusters[other].dsn))
                address = f"host={parts.hostname} port={parts.port} user={ROLE} dbname={parts.path[1:]}"
                conn.execute("select pgcombine_internal.handoff_register(%s, %s)", (other, address))


def test_granted_roles_write_read_and_replay(roles: Clusters) -> None:
    introduce(roles)
    grant(roles)
    with ReplicatedQueue({n: as_role(c.dsn) for n, c in roles.items()}, "wc", level="ALL", timeout=4) as queue:
        queue.enqueue([("fluo", 1)])
        roles["c"].cut_off()
        queue.enqueue([("fluo", 10)] * 2000, level="QUORUM")
        roles["c"].execute("alter table pgcombine.wc_updates add constraint small check (n < 1000)")
        queue.enqueue([("spark", 5), ("spark", 5000)], level="QUORUM")
        eventually(lambda: hints(roles) == {"a": 2, "b": 0, "c": 0})
        roles["c"].proxy.heal()
        done = Replayer(as_role(roles["a"].direct), min_age=0).replay(force=True)
        assert done.as_dict() == {"delivered": 2, "deduplicated": 0, "quarantined": 1}
        assert figures(roles["a"])["c"][2] == 1
        reading = queue.get(["fluo"], level="ALL")
        assert (reading.values, reading.complete) == ({"fluo": 20_001}, True)
    with psycopg.connect(as_role(roles["a"].direct), autocommit=True) as conn:
        conn.execute("select pgcombine_internal.handoff_clean_up()")
        for forbidden in ("drop table pgcombine.handoff_token",):
            with pytest.raises(psycopg.Error):
                conn.execute(forbidden)
    agreed({name: roles[name] for name in "ab"}, {"fluo": 20_001, "spark": 5005})
    agreed({"c": roles["c"]}, {"fluo": 20_001, "spark": 5})


def test_error_names_the_missing_grant(roles: Clusters) -> None:
    servers = {"a": as_role(roles["a"].dsn)}
    with ReplicatedQueue(servers, "wc") as queue, pytest.raises(UnavailableError):
        queue.enqueue([("fluo", 1)])
    with psycopg.connect(as_role(roles["a"].direct), autocommit=True) as conn:
        for call, right in (
            ("handoff_clean_up()", "work"),
            ("handoff_remembers('017F22E2-79B0-7CC3-98C4-DC0C0C07398F')", "handoff"),
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege) as refused:
                conn.execute(f"select pgcombine_internal.{call}")
            assert f"grant_right('{right}', '{ROLE}'" in (refused.value.diag.message_hint or "")
    grant(roles)
    roles["a"].execute(f"revoke insert on pgcombine.wc_updates from {ROLE}")
    with ReplicatedQueue(servers, "wc") as queue, pytest.raises(UnavailableError):
        queue.enqueue([("fluo", 1)])
