"""Feeds read by ``format("pgcombine")``: frames and streams have the changes, also after kills and restarts."""

from __future__ import annotations

import itertools
import json
import random
from contextlib import ExitStack
from datetime import datetime
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb
from support import eventually
from support.queues import combine, combine_all, expire, make_queue, one
from support.roles import Roles, as_role
from support.servers import embedded_only

from pgcombine.errors import (
    ConfigError,
    FeedNotFoundError,
    InvalidDefinitionError,
    NotGrantedError,
    OffsetTooOldError,
    PgCombineError,
)
from pgcombine.spark.errors import explained
from pgcombine.spark.options import Options

from .feeds import Follower, make_feed, require_copy, rows_of, seen

pytestmark = [pytest.mark.spark, embedded_only]

Offset = dict[str, int]


def read(spark: Any, dsn: str, **options: str) -> Any:
    return spark.read.format("pgcombine").options(**{"feed": "f", "dsn": dsn, **options}).load()


def changes(frame: Any) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.orderBy("_bucket", "_sequence").select("word", "old_n", "new_n").collect()]


def offset(conn: psycopg.Connection, after: Offset | None = None, most: int | None = None) -> Offset:
    given = None if after is None else Jsonb(after)
    found: Offset = one(conn, "select pgcombine_internal.feed_offset('f', %s, %s)", given, most)
    return found


def test_frame_has_the_changes_between_two_offsets(spark: Any, dsn: str, conn: psycopg.Connection) -> None:
    make_feed(conn)
    combine(conn, {"a": 1, "b": 1}, {"a": 2})
    middle = offset(conn)
    combine(conn, {"a": -3, "c": 5})
    assert set(changes(read(spark, dsn))) == {
        ("a", None, 1),
        ("a", 1, 3),
        ("a", 3, None),
        ("b", None, 1),
        ("c", None, 5),
    }
    text = json.dumps(middle)
    late = read(spark, dsn, startingOffsets=text)
    assert set(changes(late)) == {("a", 3, None), ("c", None, 5)}
    assert late.rdd.getNumPartitions() == len({row._bucket for row in late.collect()})
    early = read(spark, dsn, starting_offsets="earliest", endingOffsets=text, where="word = 'a'")
    assert changes(early) == [("a", None, 1), ("a", 1, 3)]
    assert read(spark, dsn, startingOffsets="latest").collect() == []
    assert read(spark, dsn, startingOffsets=text, endingOffsets=text).collect() == []
    with pytest.raises(ConfigError, match="endingOffsets"), explained():
        read(spark, dsn, startingOffsets="latest", endingOffsets=text).collect()


def test_frame_has_the_columns_of_the_feed(spark: Any, dsn: str, conn: psycopg.Connection) -> None:
    make_queue(conn, key=["id int", "day date"], value=["n numeric(9,2) sum", "tags text[] array_union"])
    conn.execute("select pgcombine.create_feed('f', 'wc')")
    conn.execute("insert into pgcombine.wc_updates values (7, '2024-02-29', 1.5, array['x'])")
    combine_all(conn)
    frame = read(spark, dsn)
    assert frame.schema.simpleString() == (
        "struct<_bucket:int,_sequence:bigint,_change_type:string,_commit_version:bigint,_commit_timestamp:timestamp,"
        "id:int,day:date,old_n:decimal(9,2),old_tags:array<string>,new_n:decimal(9,2),new_tags:array<string>>"
    )
    (row,) = frame.collect()
    assert (row._change_type, row.id, row.day.isoformat()) == ("insert", 7, "2024-02-29")
    assert (row.old_n, row.old_tags, row.new_n, row.new_tags) == (None, None, Decimal("1.50"), ["x"])
    assert isinstance(row._commit_timestamp, datetime)
    assert [row._bucket, row._sequence, row._commit_version] == [
        *conn.execute(
            "select _bucket, _sequence, _commit_version from pgcombine.f_read('{}') where _after is null"
        ).fetchall()[0]
    ]
    assert read(spark, dsn, columns="new_n,id").columns == ["new_n", "id"]


def test_frame_reaches_beyond_a_rebucket(spark: Any, dsn: str, conn: psycopg.Connection) -> None:
    make_feed(conn)
    combine(conn, {f"w{n}": 1 for n in range(40)})
    before = offset(conn)
    conn.execute("select pgcombine.rebucket('wc', 16)")
    combine(conn, {f"w{n}": 1 for n in range(40)})
    assert len(changes(read(spark, dsn))) == 80
    assert set(changes(read(spark, dsn, startingOffsets=json.dumps(before)))) == {(f"w{n}", 1, 2) for n in range(40)}
    assert len(changes(read(spark, dsn, endingOffsets=json.dumps(before)))) == 40


def test_frame_with_wrong_options_is_refused(spark: Any, dsn: str, conn: psycopg.Connection) -> None:
    make_feed(conn)
    refused: list[tuple[dict[str, str], type[PgCombineError]]] = [
        ({"feed": "none"}, FeedNotFoundError),
        ({"columns": "n"}, InvalidDefinitionError),
        ({"startingOffsets": '{"77": 1}'}, InvalidDefinitionError),
        ({"endingOffsets": '{"0": "x"}'}, InvalidDefinitionError),
        ({"startingOffsets": "now"}, ConfigError),
        ({"endingOffsets": "[]"}, ConfigError),
        ({"maxChangesPerTrigger": "3"}, ConfigError),
        ({"consumer": "me"}, ConfigError),
        ({"queue": "wc"}, ConfigError),
    ]
    for options, kind in refused:
        with pytest.raises(kind), explained():
            read(spark, dsn, **options).collect()


def test_offset_that_is_too_old_is_refused(spark: Any, dsn: str, conn: psycopg.Connection, tmp_path: Path) -> None:
    make_feed(conn, retention="1 min")
    follower = Follower(spark, dsn, tmp_path, startingOffsets="earliest")
    combine(conn, {"a": 1})
    follower.run()
    start = json.dumps(offset(conn))
    combine(conn, {"a": 1})
    expire(conn)
    with pytest.raises(OffsetTooOldError), explained():
        read(spark, dsn, startingOffsets=start).collect()
    with pytest.raises(OffsetTooOldError), explained():
        follower.run()
    with pytest.raises(OffsetTooOldError), explained():
        Follower(spark, dsn, tmp_path / "other", startingOffsets=start).run()
    assert changes(read(spark, dsn)) == []


def test_role_needs_only_the_right_to_read(spark: Any, dsn: str, conn: psycopg.Connection, tmp_path: Path) -> None:
    make_feed(conn)
    combine(conn, {"a": 1}, {"a": 1})
    with Roles(conn, dsn) as roles:
        role = roles.login("select, insert, delete on copied", "insert on seen").info.user
        options = {"startingOffsets": "earliest", "maxChangesPerTrigger": "1", "consumer": "me"}
        follower = Follower(spark, as_role(dsn, role), tmp_path, **options)
        for call in (lambda: read(spark, as_role(dsn, role)).collect(), follower.run):
            with pytest.raises(NotGrantedError), explained():
                call()
        conn.execute("select pgcombine.grant_right('read', %s, 'wc')", (role,))
        assert changes(read(spark, as_role(dsn, role))) == [("a", None, 1), ("a", 1, 2)]
        while seen(conn) < 2:  # PySpark before 4.2 ends after one batch
            follower.run()
    require_copy(conn)
    assert one(conn, "select consumer from pgcombine.feed_consumer") == "me"  # the consumer has committed


def test_stream_begins_with_the_present_offset(spark: Any, dsn: str, conn: psycopg.Connection, tmp_path: Path) -> None:
    make_feed(conn)
    combine(conn, {"a": 1})
    follower = Follower(spark, dsn, tmp_path)
    query = follower.start(processingTime="0 seconds")
    try:
        eventually(lambda: query.lastProgress, timeout=120, what="the stream has begun")
        combine(conn, {"b": 1}, {"b": 2})
        eventually(lambda: seen(conn) == 2, timeout=120, what="the stream has the changes")
    finally:
        query.stop()
    assert rows_of(conn, "select * from copied") == [("b", 3)]


@pytest.mark.pyspark(">=4.2")
def test_progress_shows_how_far_the_stream_is_behind(
    spark: Any, dsn: str, conn: psycopg.Connection, tmp_path: Path
) -> None:
    make_feed(conn)
    combine(conn, {f"w{n}": 1 for n in range(7)})
    query = Follower(spark, dsn, tmp_path, startingOffsets="earliest", maxChangesPerTrigger="5").start()
    query.awaitTermination()
    newest = one(conn, "select pgcombine_internal.feed_offset('f')")
    first, *_ = [source for progress in query.recentProgress for source in progress["sources"]]
    assert json.loads(first["latestOffset"]) == newest
    assert json.loads(first["endOffset"]) != newest


@pytest.mark.pyspark(">=4.2")
def test_batches_obey_the_limit(spark: Any, dsn: str, conn: psycopg.Connection, tmp_path: Path) -> None:
    make_feed(conn)
    combine(conn, {f"w{n}": 1 for n in range(23)})
    follower = Follower(spark, dsn, tmp_path, startingOffsets="earliest", maxChangesPerTrigger="5", consumer="me")
    follower.run()
    combine(conn, {"w1": 1})
    follower.run()
    assert conn.execute("select count(*) from seen group by batch order by batch").fetchall() == [
        *[(5,)] * 4,
        (3,),
        (1,),
    ]
    behind = one(conn, "select behind from pgcombine.feed_stat")
    assert behind <= 1  # Spark commits a batch when it plans the next one
    assert one(conn, "select consumers from pgcombine.feed_stat") == 1


def test_stream_is_equal_to_the_values_after_restarts(
    spark: Any, dsn: str, conn: psycopg.Connection, tmp_path: Path
) -> None:
    """After some stops Spark's record of the last batch is deleted. A rebucket comes in between."""
    chance = random.Random(7)
    make_feed(conn)
    follower = Follower(spark, dsn, tmp_path, startingOffsets="earliest", maxChangesPerTrigger="7")
    for turn in range(4):
        for _ in range(3):
            combine(conn, {f"w{chance.randrange(12)}": chance.choice([-1, 1, 2]) for _ in range(6)})
        if turn == 1:
            conn.execute("select pgcombine.rebucket('wc', 8)")
            continue
        before = seen(conn)
        query = follower.start(processingTime="0 seconds")
        try:
            eventually(
                lambda before=before, query=query: seen(conn) > before or query.exception(),
                timeout=120,
                what="a batch is written",
            )
            assert query.exception() is None, str(query.exception())
        finally:
            follower.stop(query)
        if chance.random() < 0.7:
            follower.forget_last_commit()
    # before PySpark 4.2, ``run`` ends after one batch
    while seen(conn) < one(conn, "select count(*) from pgcombine.wc_changes"):
        Follower(spark, dsn, tmp_path).run()
    require_copy(conn)


@pytest.mark.parametrize("changes", [0, 1])
def test_first_batch_is_repeated_from_where_it_began(
    spark: Any, dsn: str, conn: psycopg.Connection, tmp_path: Path, changes: int
) -> None:
    """To repeat the batch, Spark asks for the initial offset again. The latest offset has changed meanwhile."""
    make_feed(conn)
    follower = Follower(spark, dsn, tmp_path, startingOffsets="latest")
    query = follower.start(processingTime="0 seconds")
    try:
        eventually(lambda: query.lastProgress or query.exception(), timeout=120, what="the query has begun")
        combine(conn, *[{"a": 1}] * changes)
        eventually(lambda: seen(conn) == changes or query.exception(), timeout=120, what="the change has been written")
        assert query.exception() is None, str(query.exception())
    finally:
        follower.stop(query)
    follower.forget_last_commit()
    conn.execute("truncate seen, copied")  # as if nothing had been written
    combine(conn, {"c": 3})
    while seen(conn) < changes + 1:
        follower.run()
    require_copy(conn)


@pytest.mark.parametrize("start", ["latest", "earliest"])
def test_stream_goes_on_after_a_crash_in_any_batch(
    dsn: str, conn: psycopg.Connection, monkeypatch: pytest.MonkeyPatch, start: str
) -> None:
    """The calls that Spark makes, without Spark. Before and after the crash, the feed changes or stays."""
    from pgcombine.spark import feed
    from pgcombine.spark.reader import schema_of

    limits = find_spec("pyspark.sql.streaming.datasource") is not None  # PySpark before 4.2 passes none
    make_feed(conn)
    monkeypatch.setattr(feed, "_IDLE_SECONDS", 0)
    options = Options.of({"feed": "f", "dsn": dsn, "startingOffsets": start, "maxchangespertrigger": "5"}, reading=True)
    schema = schema_of(options)
    planned: list[Any] = []  # Spark's log of offsets
    complete: list[int] = []  # Spark's log of commits
    got: list[Any] = []

    def run(crash: int | None = None) -> None:
        """Repeat the batch that isn't complete, then run others, until there is none or the batch ``crash`` begins."""
        with ExitStack() as stack:
            reader = feed.FeedStreamReader(options, schema)
            stack.callback(reader.stop)
            if planned and not limits:  # setLatestSeenOffset of Spark's PythonMicroBatchStream
                reader.partitions(planned[-1], planned[-1])
            while True:
                number = len(complete)
                begin = planned[number - 1] if number else reader.initialOffset()
                if number == len(planned):
                    arguments = (begin, reader.getDefaultReadLimit()) if limits else ()
                    end = json.loads(json.dumps(reader.latestOffset(*arguments)))
                    if planned and end == begin:
                        break
                    planned.append(end)
                if number == crash:
                    break
                for part in reader.partitions(begin, planned[number]):
                    got.extend(row for batch in (reader.read(part) if part else ()) for row in batch.to_pylist())
                complete.append(number)

    def alter(what: str) -> None:
        if what == "rebucket":
            buckets = one(conn, "select buckets from pgcombine.queue")
            conn.execute("select pgcombine.rebucket('wc', %s)", (12 - buckets,))
        elif what == "changes":
            combine(conn, {"a": 1, "b": 1, "c": 1})

    events = ("nothing", "changes", "rebucket")
    for before, after, crash in itertools.product(events, events, (0, None)):
        planned.clear(), complete.clear(), got.clear()
        initial = offset(conn) if start == "latest" else {}
        run(crash)
        alter(before)
        run(crash=len(planned))
        alter(after)
        run()
        there = conn.execute("select _bucket, _sequence from pgcombine.wc_changes order by 1, 2").fetchall()
        wanted = [(bucket, number) for bucket, number in there if number > initial.get(str(bucket), 0)]
        assert sorted((row["_bucket"], row["_sequence"]) for row in got) == wanted, (before, after, crash)
