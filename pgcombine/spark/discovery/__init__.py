"""``format("pgcombine")`` where Spark finds it: the wheel installs this as the package ``pyspark_pgcombine``, too.

Spark imports all packages of such names, and finds none if one of them can't be imported: so this one imports
nothing but PySpark until it is used. An editable install isn't seen by Spark; there, and everywhere without harm,
``pgcombine.spark.register(spark)`` makes the format known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamArrowWriter, DataSourceWriter
    from pyspark.sql.types import StructType


class DefaultSource(DataSource):  # type: ignore[misc]
    """Writes frames and streams to a queue as updates; reads its values."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "pgcombine"

    def schema(self) -> StructType:
        """The queue's key and value columns."""
        from pgcombine.spark.options import Options
        from pgcombine.spark.reader import schema_of

        return schema_of(Options.of(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        """For ``spark.read``."""
        from pgcombine.spark.options import Options
        from pgcombine.spark.reader import ValuesReader

        return ValuesReader(Options.of(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """For ``df.write``."""
        from pgcombine.spark.options import Options
        from pgcombine.spark.writer import BatchWriter

        return BatchWriter(Options.of(self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        """For ``df.writeStream``."""
        from pgcombine.spark.options import Options
        from pgcombine.spark.writer import StreamWriter

        return StreamWriter(Options.of(self.options), schema, overwrite)
