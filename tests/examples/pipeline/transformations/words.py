"""The queue ``wc`` counts the words of text files, each file once, however often the pipeline runs or is killed.

``PGCOMBINE_DSN`` names the database, and ``WORDS`` names the directory of the files. After
``pip install 'pyspark[pipelines]'``, run ``spark-pipelines run`` in the directory of ``spark-pipeline.yml``. Workers
(``pgcombine worker``) may run anywhere.
"""

from __future__ import annotations

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

from pgcombine.spark import register

spark = SparkSession.active()
register(spark)

# with a source, a full refresh counts each file once, too
options = {"queue": "wc", "dsn": os.environ["PGCOMBINE_DSN"], "source": "files"}
dp.create_sink("counts", format="pgcombine", options=options)


@dp.append_flow(target="counts")
def words() -> DataFrame:
    lines = spark.readStream.text(os.environ["WORDS"])
    return lines.selectExpr("explode(split(value, ' ')) as word", "1L as n")
