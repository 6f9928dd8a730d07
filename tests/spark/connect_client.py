"""Use a queue over Spark Connect and print the results: ``python connect_client.py REMOTE DSN DIRECTORY``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession, datasource

from pgcombine.errors import PgCombineError
from pgcombine.spark import foreach_batch, initialize, register, write_jdbc
from pgcombine.spark.errors import explained


def refused(call: Any) -> str:
    """Make a call that should fail. Returns its error, or "not refused"."""
    try:
        with explained():
            call()
    except PgCombineError as error:
        return str(error)
    return "not refused"


def use(spark: Any, dsn: str, directory: Path) -> dict[str, Any]:
    seen: dict[str, Any] = {"session": type(spark).__module__}
    options = {"queue": "wc", "dsn": dsn}
    words = spark.range(400, numPartitions=4).selectExpr("concat('w', id % 10) as word", "1L as n")

    def save(frame: Any, **more: str) -> None:
        frame.write.format("pgcombine").options(**{**options, **more}).mode("append").save()

    for more in ({"runId": "r"}, {"runId": "r"}, {"preaggregate": "true"}):
        save(words, **more)  # the second write repeats the run of the first
    seen["jdbc"] = [write_jdbc(words, "wc", dsn, "j").applied for _ in range(2)]
    for rows in (words, words.where("word < 'w5'")):  # the second write replaces the first
        rows.write.format("pgcombine").options(**options, source="day").mode("overwrite").save()

    def stream(target: Any, checkpoint: str = "checkpoint") -> None:
        lines = spark.readStream.text(str(directory / "files"))
        counted = lines.selectExpr("explode(split(value, ' ')) as word", "1L as n")
        writer = counted.writeStream.option("checkpointLocation", str(directory / checkpoint))
        query = target(writer.trigger(availableNow=True)).start()
        query.awaitTermination()

    def by_format(checkpoint: str, **more: str) -> None:
        stream(lambda writer: writer.format("pgcombine").options(**options, **more), checkpoint)

    (directory / "files").mkdir()
    (directory / "files" / "1.txt").write_text("streamed streamed\n")
    if not hasattr(datasource, "DataSourceStreamArrowWriter"):  # PySpark 4.0
        seen["stream"] = refused(lambda: by_format("checkpoint"))
    else:
        by_format("checkpoint")
        for file in (directory / "checkpoint" / "commits").glob("*0*"):
            file.unlink()  # as if Spark had been killed before it recorded that the batch was complete
        by_format("checkpoint")
        for checkpoint in ("one", "two"):  # the second query is a full refresh
            by_format(checkpoint, source="files")
    (directory / "files" / "2.txt").write_text("named\n")
    seen["foreach_batch"] = refused(lambda: stream(lambda writer: writer.foreachBatch(foreach_batch("wc", dsn))))

    def named(frame: Any, batch: int) -> None:
        write_jdbc(frame, "wc", dsn, f"mine:{batch}")

    stream(lambda writer: writer.foreachBatch(named))

    seen["missing column"] = refused(lambda: save(words.select("n")))
    seen["overwrite"] = refused(lambda: words.write.format("pgcombine").options(**options).mode("overwrite").save())
    seen["no queue"] = refused(lambda: save(words, queue="nothing"))
    initialize(spark.range(100).selectExpr("concat('k', id) as word", "id + 1 as n"), "loaded", dsn)
    read = spark.read.format("pgcombine").options(queue="loaded", dsn=dsn).load()
    seen["read"] = [read.count(), read.selectExpr("sum(n)").first()[0], read.where("word = 'k7'").first().n]
    return seen


if __name__ == "__main__":
    spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
    try:
        register(spark)
        print(json.dumps(use(spark, sys.argv[2], Path(sys.argv[3]))))
    finally:
        spark.stop()
