"""``format("pgcombine")``. The wheel also installs this package as ``pyspark_pgcombine``, where Spark finds it.

Spark imports the packages whose names begin with ``pyspark_``, and finds no format if one import fails. So this package
doesn't import other packages of pgcombine until the format is used. Spark doesn't find the format of an editable
install: there, ``pgcombine.spark.register(spark)`` registers it.
"""

from __future__ import annotations

import copyreg
import importlib
import pickle
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamArrowWriter,
        DataSourceStreamReader,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType


class DefaultSource(DataSource):  # type: ignore[misc]
    """Spark's data source: writes frames and streams into a queue, and reads a queue's values or a feed's changes."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        _import_installed()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        _import_installed()

    @classmethod
    def name(cls) -> str:
        return "pgcombine"

    def schema(self) -> StructType:
        from pgcombine.spark.errors import brief
        from pgcombine.spark.options import Options
        from pgcombine.spark.reader import schema_of

        with brief():
            return schema_of(Options.of(self.options, reading=True))

    def reader(self, schema: StructType) -> DataSourceReader:
        from pgcombine.spark.errors import brief
        from pgcombine.spark.feed import FeedReader
        from pgcombine.spark.options import Options
        from pgcombine.spark.reader import ValuesReader

        with brief():
            options = Options.of(self.options, reading=True)
            return _portable((FeedReader if options.feed else ValuesReader)(options, schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from pgcombine.spark.errors import brief
        from pgcombine.spark.feed import FeedStreamReader
        from pgcombine.spark.options import Options

        with brief():
            return _portable(FeedStreamReader(Options.of(self.options, reading=True), schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from pgcombine.spark.errors import brief
        from pgcombine.spark.options import Options
        from pgcombine.spark.writer import BatchWriter

        with brief():
            return _portable(BatchWriter(Options.of(self.options), schema, overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        from pgcombine.spark.errors import brief
        from pgcombine.spark.options import Options
        from pgcombine.spark.writer import StreamWriter

        with brief():
            return _portable(StreamWriter(Options.of(self.options), schema, overwrite))


def _import_installed() -> None:
    """Import the pgcombine that was installed together with this module, unless one is imported already.

    Spark's Python processes may search Spark's working directory first. If that is a checkout, its pgcombine may be of
    another version.
    """
    site = Path(__file__).parents[1]
    if "pgcombine" in sys.modules or not (site / "pgcombine").is_dir():
        return
    sys.path.insert(0, str(site))
    try:
        importlib.import_module("pgcombine")
    finally:
        sys.path.remove(str(site))


def _portable(one: Any) -> Any:
    """Return the reader or writer. A process that unpickles it calls :func:`_import_installed` first."""
    copyreg.pickle(type(one), _packed)
    return one


def _packed(one: object) -> tuple[Any, ...]:
    return _unpacked, (pickle.dumps((type(one), vars(one))),)


def _unpacked(packed: bytes) -> object:
    _import_installed()
    kind, state = pickle.loads(packed)
    one = kind.__new__(kind)
    vars(one).update(state)
    return one
