"""A queue is used by an owner and by a role for each right; none of these roles is a superuser."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql
from support import run_cli
from support.proxy import Proxy
from support.queues import add, current, make_queue, one, values
from support.roles import PASSWORD, Roles, as_role
from support.servers import Server, with_database

from pgcombine import CombineQueue, Replayer, ReplicatedQueue, drain, schema
from pgcombine.export.worker import ExportWorker
from pgcombine.spark import write_jdbc

pytestmark = [pytest.mark.spark, pytest.mark.jdbc]

RIGHTS = ("enqueue", "work", "read", "handoff", "monitor")


class Cast:
    """An owner and a role for each of ``RIGHTS``, with the databases ``a`` and ``b``."""

    def __init__(self, admin: psycopg.Connection, dsns: dict[str, str], roles: Roles) -> None:
        self.dsns = dsns
        self.names = {right: roles.login().info.user for right in ("owner", *RIGHTS)}
        for dsn in dsns.values():
            admin.execute(
                sql.SQL("grant create on database {} to {}").format(
                    sql.Identifier(urlsplit(dsn).path[1:]), sql.Identifier(self.names["owner"])
                )
            )

    def dsn(self, right: str, database: str = "a") -> str:
        return as_role(self.dsns[database], self.names[right])

    def connect(self, right: str, database: str = "a") -> psycopg.Connection:
        return psycopg.connect(self.dsn(right, database), autocommit=True)


@pytest.fixture
def cast(server: Server, empty_dsn: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Cast]:
    with psycopg.connect(server.dsn, autocommit=True) as admin:
        other = f"{urlsplit(empty_dsn).path[1:]}_b"
        admin.execute(sql.SQL("create database {}").format(sql.Identifier(other)))
        try:
            with Roles(admin, server.dsn) as roles:
                cast = Cast(admin, {"a": empty_dsn, "b": with_database(server.dsn, other)}, roles)
                file = tmp_path / "pgpass"
                file.write_text("".join(f"*:*:*:{name}:{PASSWORD}\n" for name in cast.names.values()))
                file.chmod(0o600)
                monkeypatch.setitem(os.environ, "PGPASSFILE", str(file))
                yield cast
                for database in cast.dsns.values():
                    with psycopg.connect(database, autocommit=True) as conn:
                        conn.execute("drop schema if exists pgcombine, pgcombine_internal cascade")
                        for name in cast.names.values():
                            conn.execute(sql.SQL("drop owned by {}").format(sql.Identifier(name)))
        finally:
            admin.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(other)))


def grant(owner: psycopg.Connection, cast: Cast, right: str, *subjects: str) -> None:
    arguments = sql.SQL(", ").join(map(sql.Literal, [right, cast.names[right], *subjects]))
    owner.execute(sql.SQL("select pgcombine.grant_right({})").format(arguments))


@pytest.mark.slow
def test_roles_with_one_right_run_a_queue(cast: Cast, spark: Any, tmp_path: Path) -> None:
    Path(tmp_path, "out").mkdir()
    # the owner creates the schema and the queues, and grants rights
    schema.upgrade(cast.dsn("owner"))
    schema.upgrade(cast.dsn("owner", "b"))
    with cast.connect("owner") as owner:
        make_queue(owner)
        make_queue(owner, "other")
        owner.execute(
            "select pgcombine.create_export('words', 'wc', exporter => 'files', target => %s)", (f"{tmp_path}/out",)
        )
        for right in RIGHTS:
            grant(owner, cast, right, *([] if right in ("monitor", "work") else ["wc"]))
        owner.execute("update pgcombine.queue set quarantine_after = 1")

    # applications enqueue, a worker combines, readers read
    with cast.connect("enqueue") as app:
        CombineQueue("wc").enqueue(app, [("a", 1), ("b", 2)])
        add(app, {"a": 10})
        assert drain(cast.dsn("work"), "wc").updates == 3
        app.execute("call pgcombine.wait('wc', '1 min')")
    with cast.connect("read") as reader:
        assert values(reader) == {"a": 11, "b": 2}
        assert CombineQueue("wc").get(reader, ["a"]) == {"a": 11}

    # Spark loads rows, they become values, and Spark reads the values
    frame = spark.createDataFrame([("a", 100), ("c", 3)], "word string, n bigint")
    frame.write.format("pgcombine").options(queue="wc", dsn=cast.dsn("work")).mode("append").save()
    write_jdbc(frame, "wc", cast.dsn("work"), "run 1")
    drain(cast.dsn("work"), "wc")
    read = spark.read.format("pgcombine").options(queue="wc", dsn=cast.dsn("read")).load()
    assert {row["word"]: row["n"] for row in read.collect()} == {"a": 211, "b": 2, "c": 6}

    # changes are exported
    assert ExportWorker(cast.dsn("work"), "words").drain(60) >= 3
    files = Path(tmp_path, "out").rglob("*.jsonl")
    written = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert {entry["word"]: entry["new_n"] for entry in sorted(written, key=lambda e: e["seq"])} == {
        "a": 211,
        "b": 2,
        "c": 6,
    }

    # a key fails: a worker shows and drops it, and a monitor sees the quarantine
    with cast.connect("enqueue") as app:
        add(app, [("poison", 2**62), ("poison", 2**62), ("d", 4)])
    drain(cast.dsn("work"), "wc")
    state = json.loads(run_cli("status", "--json", "--dsn", cast.dsn("monitor")).stdout)
    assert {queue["queue"]: queue["quarantined_keys"] for queue in state["queues"]} == {"other": 0, "wc": 1}
    with cast.connect("work") as operator:
        assert one(operator, "select key->>'word' from pgcombine.quarantine") == "poison"
        assert one(operator, "select pgcombine.drop_quarantined('wc')") == 2
        operator.execute("select pgcombine.pause('wc')")
        operator.execute("select pgcombine.resume('wc')")

    # two servers: one is unreachable, and then gets the missed writes
    addresses = {name: urlsplit(dsn) for name, dsn in cast.dsns.items()}
    proxy = Proxy(addresses["b"].port or 5432)
    with cast.connect("owner") as a, cast.connect("owner", "b") as b:
        make_queue(b)
        grant(b, cast, "handoff", "wc")
        grant(b, cast, "read", "wc")
        grant(b, cast, "work")
        for conn, name, other, port in ((a, "a", "b", proxy.port), (b, "b", "a", addresses["a"].port)):
            conn.execute("select pgcombine_internal.handoff_identify(%s)", (name,))
            # the address of the other server names the role that may write there
            address = f"host=127.0.0.1 port={port} user={cast.names['handoff']} dbname={addresses[other].path[1:]}"
            conn.execute("select pgcombine_internal.handoff_register(%s, %s)", (other, address))
    through = urlsplit(cast.dsn("handoff", "b"))
    b_dsn = through._replace(netloc=through.netloc.rpartition(":")[0] + f":{proxy.port}").geturl()
    proxy.refuse = True
    with ReplicatedQueue({"a": cast.dsn("handoff"), "b": b_dsn}, "wc", level="ONE", timeout=4) as queue:
        queue.enqueue([("e", 5)])
    proxy.heal()
    with cast.connect("work") as replayer:
        assert one(replayer, "select count(*) from pgcombine.hint") == 1
    assert Replayer(cast.dsn("work"), min_age=0).replay(force=True).delivered == 1
    drain(cast.dsn("work"), "wc")
    drain(cast.dsn("work", "b"), "wc")
    with cast.connect("read") as at_a, cast.connect("read", "b") as at_b:
        assert current(at_a) == {"a": 211, "b": 2, "c": 6, "d": 4, "e": 5}
        assert current(at_b) == {"e": 5}

    proxy.close()

    # the owner upgrades and changes the number of buckets, and all roles still work
    with cast.connect("owner") as owner:
        owner.execute("update pgcombine.schema_version set digest = 'older'")
    assert schema.upgrade(cast.dsn("owner")) == schema.head()
    with cast.connect("owner") as owner:
        owner.execute("select pgcombine.rebucket('wc', 2)")
    with cast.connect("enqueue") as app:
        add(app, {"a": 1})
    drain(cast.dsn("work"), "wc")
    with cast.connect("read") as reader:
        assert values(reader)["a"] == 212
