"""A Spark stream enqueues the words of new text files, and a queue counts them.

Run it: ``python tests/examples/word_count_stream.py``. It starts a PostgreSQL server in a temporary directory.
It only needs ``pip install 'pgcombine[binary,embedded,spark]'``.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import psycopg

from pgcombine import CombineQueue, drain, schema
from pgcombine.embedded import EmbeddedServer
from pgcombine.spark import session

words = CombineQueue("words", key=["word text"], value=["n bigint sum"])

with tempfile.TemporaryDirectory() as directory:
    server = EmbeddedServer(Path(directory, "server"))
    try:
        server.start()
        dsn = server.dsn()
        schema.upgrade(dsn)
        with psycopg.connect(dsn) as connection:
            words.create(connection)

        files = Path(directory, "files")
        files.mkdir()
        spark = session("word count", master="local[2]")
        lines = spark.readStream.text(str(files))
        counted = lines.selectExpr("explode(split(value, ' ')) as word", "1L as n")
        stream = (
            counted.writeStream.format("pgcombine")
            .options(queue="words", dsn=dsn)
            .option("checkpointLocation", str(Path(directory, "checkpoint")))
            .trigger(availableNow=True)  # without this line the stream runs until it is stopped
        )
        for number, text in enumerate(["to be or not to be", "not to worry"]):
            Path(files, f"{number}.txt").write_text(text)
            stream.start().awaitTermination()
            done = drain(dsn, "words")  # the daemon `pgcombine worker` does this until it is stopped
            print(f"{done.updates} words: {done.changes} totals changed")

        values = spark.read.format("pgcombine").options(queue="words", dsn=dsn).load()
        print(*(f"{row.word}={row.n}" for row in values.orderBy("word").collect()))
        spark.stop()
    finally:
        server.stop("immediate")
