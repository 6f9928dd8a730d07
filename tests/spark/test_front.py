"""With the option ``front`` Spark writes to the nodes of a front, and each row counts once."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql
from support.fronts import connected, make_front
from support.lossy import Proxy, losing_commit
from support.queues import one
from support.readme import ROOT, fences
from support.servers import with_contrib

from pgcombine.errors import BacklogFullError, ConfigError, ConnectError, InvalidUpdateError, LoadError, PgCombineError
from pgcombine.shard.moving import move_shard

from .frames import COUNTED, Pause, frame, once, write
from .programs import Program
from .streams import Stream

pytestmark = [pytest.mark.spark, with_contrib, pytest.mark.timeout(600)]
WORD = "word string, n bigint"


def load(given: Any, dsn: str, run_id: str = "r", **options: object) -> None:
    write("copy", given, dsn, run_id, front="true", **options)


def current(front: psycopg.Connection) -> dict[str, int]:
    return dict(front.execute("select word, n from pgcombine.wc_current").fetchall())


def left(nodes: list[str]) -> int:
    """Return the number of loads that the nodes still record."""
    counts = []
    for dsn in nodes:
        with connected(dsn) as conn:
            counts.append(one(conn, "select count(*) from pgcombine.spark_load"))
    return sum(counts)


@pytest.mark.parametrize("preaggregate", ["false", "true"])
def test_rows_of_a_failed_task_and_of_a_rerun_count_once(
    spark: Any, dsn: str, front: psycopg.Connection, nodes: list[str], tmp_path: Path, preaggregate: str
) -> None:
    def fail() -> None:
        raise ValueError("fails in the first attempt")

    load(frame(spark, once(tmp_path, fail)), dsn, preaggregate=preaggregate)
    assert (tmp_path / "happened").exists()
    assert current(front) == COUNTED
    load(frame(spark, parts=2), dsn, preaggregate=preaggregate)
    assert current(front) == COUNTED
    assert left(nodes) == 0
    assert front.execute("select * from pgcombine.check_front('wc')").fetchall() == []
    for shard in range(4):  # each row is where the front looks for it
        current_shard = sql.Identifier("pgcombine_internal", f"wc_current_{shard:02}")
        rows = front.execute(sql.SQL("select word from {}").format(current_shard)).fetchall()
        assert rows
        assert {one(front, "select pgcombine.shard_of('wc', %s)", word) for (word,) in rows} == {shard}


def test_keys_of_several_types_reach_their_shards(
    spark: Any, dsn: str, conn: psycopg.Connection, nodes: list[str]
) -> None:
    key = ["day date", "id uuid", "at timestamptz", "big numeric(20,3)", "raw bytea", "yes boolean", "x float8"]
    make_front(conn, nodes, key=key)
    rows = spark.range(400).selectExpr(
        "date_add(date'2024-02-28', cast(id % 9 as int)) as day",
        "concat('00000000-0000-0000-0000-', lpad(id, 12, '0')) as id",
        "timestamp_seconds(id * 12345) as at",
        "cast(id / 8 as decimal(20,3)) as big",
        "encode(concat('\\\\\"', id, ','), 'UTF-8') as raw",
        "id % 2 = 0 as yes",
        "id / 3 as x",
        "1L as n",
    )
    load(rows, dsn)
    found = 0
    for shard in range(4):
        owners = conn.execute(
            sql.SQL(
                "select pgcombine_internal.wc_shard_number(day, id, at, big, raw, yes, x), count(*) from {} group by 1"
            ).format(sql.Identifier("pgcombine_internal", f"wc_current_{shard:02}"))
        ).fetchall()
        assert [owner for owner, _ in owners] == [shard]
        found += owners[0][1]
    assert found == 400


def test_front_needs_a_run_id(spark: Any, dsn: str, front: psycopg.Connection) -> None:
    with pytest.raises(ConfigError, match="runId"):
        write("copy", frame(spark), dsn, front="true")
    with pytest.raises(InvalidUpdateError):
        load(spark.createDataFrame([("a",)], "other string"), dsn)
    with pytest.raises(InvalidUpdateError):
        load(spark.createDataFrame([(None, 1)], WORD), dsn)
    assert current(front) == {}


def test_node_that_is_down_is_named(spark: Any, dsn: str, front: psycopg.Connection, nodes: list[str]) -> None:
    port = one(front, "select inet_server_port()")
    front.execute("alter server n1 options (set port '1')")
    with pytest.raises(ConnectError):
        load(frame(spark), dsn)
    assert left(nodes) == 0
    front.execute(f"alter server n1 options (set port '{port}')".encode())
    load(frame(spark), dsn)
    assert current(front) == COUNTED


def test_error_of_a_node_keeps_its_class(spark: Any, dsn: str, front: psycopg.Connection, nodes: list[str]) -> None:
    with connected(nodes[1]) as conn:
        conn.execute(
            "create function public.full() returns trigger language plpgsql as "
            "$$ begin raise 'full' using errcode = 'PC010'; end $$"
        )
        conn.execute(
            "create trigger refusing before insert on pgcombine.wc_01_updates "
            "for each statement execute function public.full()"
        )
    with pytest.raises(BacklogFullError):
        load(frame(spark), dsn)
    assert left(nodes) == 0


def test_user_mappings_name_one_role(spark: Any, dsn: str, front: psycopg.Connection) -> None:
    """A run id counts once for each role. The run would count again after a shard moved to a node with another role."""
    front.execute("alter user mapping for current_user server n1 options (set user 'other')")
    with pytest.raises(ConfigError, match=r'"other".*"n1"'):
        load(frame(spark), dsn)


@contextmanager
def losing_commit_of_n0(front: psycopg.Connection, nodes: list[str], *, hang: bool = False) -> Iterator[Proxy]:
    """During the block, lose the answer to the first commit that applies loads of n0."""
    host = one(front, "select host(inet_server_addr())")
    moved = "alter server n0 options (set host '{}', set port '{}')"
    with losing_commit(nodes[0], b"end_load", hang=hang) as proxy:
        front.execute(moved.format("127.0.0.1", urlsplit(proxy.dsn).port).encode())
        yield proxy
    front.execute(moved.format(host, 5432).encode())


def test_rows_count_once_after_an_unanswered_commit_of_a_node(
    spark: Any, dsn: str, front: psycopg.Connection, nodes: list[str]
) -> None:
    with losing_commit_of_n0(front, nodes) as proxy:
        load(frame(spark), dsn)
        assert proxy.lost.is_set()
    assert current(front) == COUNTED
    assert left(nodes) == 0


@pytest.mark.parametrize("ended", [True, False])
def test_shard_that_moves_meanwhile_fails_the_job(
    spark: Any, dsn: str, front: psycopg.Connection, nodes: list[str], tmp_path: Path, ended: bool
) -> None:
    pause = Pause(tmp_path, part=1)
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(lambda: load(frame(spark, pause.event()), dsn))
        try:
            pause.wait()
            if ended:
                move_shard(dsn, "wc", 1, "n0")
            else:  # as if the program that moves the shard had been killed
                with connected(nodes[1]) as conn:
                    conn.execute("select pgcombine_internal.fence_shard('wc_01', '{updates}')")
        finally:
            pause.go()
        error = job.exception(240)
    assert isinstance(error, PgCombineError)
    assert 'node "n1"' in str(error)
    assert isinstance(error, LoadError)
    assert current(front) == {}
    move_shard(dsn, "wc", 1, "n0")
    load(frame(spark), dsn)
    load(frame(spark), dsn)
    assert current(front) == COUNTED


def test_rerun_writes_what_a_killed_driver_left_out(
    spark: Any, dsn: str, front: psycopg.Connection, nodes: list[str], tmp_path: Path
) -> None:
    """The driver is killed when n0 has committed and n1 hasn't."""
    with losing_commit_of_n0(front, nodes, hang=True) as proxy:
        program = Program(tmp_path / "program")
        try:
            program.write("copy", dsn, "r", front="true")
            assert proxy.lost.wait(240)
        finally:
            program.kill()
    shards = []
    for node in nodes:
        with connected(node) as conn:
            shards += [queue for (queue,) in conn.execute("select queue from pgcombine.token").fetchall()]
    assert sorted(shards) == ["wc_00", "wc_02"]
    load(frame(spark, parts=2), dsn, "r")
    assert current(front) == COUNTED


@pytest.mark.pyspark(">=4.1")
def test_stream_counts_a_repeated_batch_once(
    spark: Any, dsn: str, front: psycopg.Connection, nodes: list[str], tmp_path: Path
) -> None:
    stream = Stream(spark, dsn, tmp_path, "copy")
    stream.add("a b c d e f g", "a a")
    stream.run(front="true")
    counted = {"a": 3} | dict.fromkeys("bcdefg", 1)
    assert current(front) == counted
    stream.forget_commit(0)
    stream.run(front="true")
    assert current(front) == counted
    stream.add("a")
    stream.run(front="true")
    assert current(front) == counted | {"a": 4}
    assert left(nodes) == 0


def test_code_of_the_page_works(spark: Any, dsn: str, conn: psycopg.Connection, nodes: list[str]) -> None:
    make_front(conn, nodes, "clicks", key=["page text"])
    clicks = spark.createDataFrame([("/", 1), ("/about", 2), ("/", 3)], "page string, n bigint")
    (piece,) = fences(ROOT / "pgcombine" / "docs" / "shards.md", "python")
    for _ in range(2):
        exec(compile(piece, "shards.md", "exec"), {"clicks": clicks, "dsn": dsn})
    assert dict(conn.execute("select page, n from pgcombine.clicks_current").fetchall()) == {"/": 4, "/about": 2}
