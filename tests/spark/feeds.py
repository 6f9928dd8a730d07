"""A feed, and a stream that copies it into tables."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import psycopg
from support.queues import make_queue, one


def make_feed(conn: psycopg.Connection, retention: str = "1 day") -> None:
    """Make the queue wc with the feed f, and the tables of a :class:`Follower`."""
    make_queue(conn)
    conn.execute("select pgcombine.create_feed('f', 'wc', retention => %s::interval)", (retention,))
    conn.execute(
        "create table copied (word text primary key, n bigint not null);"
        "create table seen (batch bigint, bucket int, sequence bigint, word text, old bigint, new bigint)"
    )


class Follower:
    """A stream that applies the changes of the feed f to the table ``copied``, and appends them to ``seen``."""

    def __init__(self, spark: Any, dsn: str, directory: Path, **options: str) -> None:
        self.spark, self.dsn, self.options = spark, dsn, options
        self.checkpoint = directory / "checkpoint"
        self.writing = threading.Lock()

    def start(self, **trigger: Any) -> Any:
        dsn, writing = self.dsn, self.writing
        changes = self.spark.readStream.format("pgcombine").options(feed="f", dsn=dsn, **self.options).load()

        def write(batch: Any, number: int) -> None:
            rows = batch.orderBy("_bucket", "_sequence").collect()
            seen = [(number, row._bucket, row._sequence, row.word, row.old_n, row.new_n) for row in rows]
            newest = {row.word: row.new_n for row in rows}
            there = [(word, n) for word, n in newest.items() if n is not None]
            with writing, psycopg.connect(dsn) as connection, connection.cursor() as cursor:
                cursor.executemany("insert into seen values (%s, %s, %s, %s, %s, %s)", seen)
                cursor.execute("delete from copied where word = any (%s)", (list(newest),))
                cursor.executemany("insert into copied values (%s, %s)", there)

        writer = changes.writeStream.option("checkpointLocation", str(self.checkpoint)).foreachBatch(write)
        return writer.trigger(**trigger or {"availableNow": True}).start()

    def stop(self, query: Any) -> None:
        """Stop the query, and wait until no batch is being written."""
        query.stop()
        with self.writing:
            pass

    def run(self) -> None:
        """Run a query with the trigger ``availableNow`` to its end."""
        query = self.start()
        try:
            query.awaitTermination()
        finally:
            self.stop(query)

    def forget_last_commit(self) -> None:
        """Delete the record that the last batch is complete, as if the driver had been killed before writing it."""
        numbers = [int(file.name) for file in (self.checkpoint / "commits").glob("[0-9]*")]
        for name in [f"{number}" for number in sorted(numbers)[-1:]]:
            (self.checkpoint / "commits" / name).unlink()
            (self.checkpoint / "commits" / f".{name}.crc").unlink(missing_ok=True)


def seen(conn: psycopg.Connection) -> int:
    """Return the number of different changes in the table ``seen``."""
    return int(one(conn, "select count(*) from (select distinct bucket, sequence from seen) s"))


def require_copy(conn: psycopg.Connection) -> None:
    """Require that the table ``copied`` equals the values, and that the table ``seen`` has the changes of the feed.

    Spark may repeat a batch, but a change must not be in two different batches.
    """
    assert rows_of(conn, "select * from copied") == rows_of(conn, "select * from pgcombine.wc_values")
    kept = "select _bucket, _sequence, word, old_n, new_n from pgcombine.wc_changes"
    distinct = "select distinct bucket, sequence, word, old, new from seen"
    assert rows_of(conn, distinct) == rows_of(conn, kept)
    assert one(conn, "select count(*) from (select distinct batch, bucket, sequence from seen) s") == seen(conn)


def rows_of(conn: psycopg.Connection, query: str) -> list[tuple[Any, ...]]:
    return sorted(conn.execute(query.encode()).fetchall(), key=str)
