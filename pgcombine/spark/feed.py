"""The reading of a feed's changes by ``format("pgcombine")``, as a frame or as a stream.

An offset has a sequence for each bucket, as in SQL (``pgcombine.create_feed``). A task reads the changes of one bucket
between two offsets. If these changes are no longer kept, :class:`OffsetTooOldError` is raised.

A batch of a stream ends where a rebucket gave keys other buckets. So a key's changes before the rebucket come in an
earlier batch than those after it. With the trigger ``availableNow``, PySpark before 4.2 ends after one batch.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from pgcombine.database.connect import Connection, connect, one
from pgcombine.errors import ConfigError, translated
from pgcombine.spark.errors import brief
from pgcombine.spark.loads import NAME
from pgcombine.spark.options import Options
from pgcombine.spark.reader import Partition, RowsReader

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # PySpark before 4.2

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Stands for the class that PySpark before 4.2 lacks."""


if TYPE_CHECKING:
    from pyspark.sql.types import StructType

Offset = dict[str, int]
# After a crash during the first batch, Spark asks for the initial offset again, which may be another one by then. So
# the offset at which the first batch ends has, under this key, the offset at which it begins, also if it has no change.
_BEGIN = "after"

_IDLE_SECONDS = 0.1  # a pause, since Spark asks again at once while there is nothing new
_LOW = "select jsonb_object_agg(bucket, low) from pgcombine_internal.feed_bounds(%s, %s)"


class _Changes(RowsReader):
    """The common base of the readers of changes: it asks the database for offsets, and makes the parts."""

    def __init__(self, options: Options, schema: StructType) -> None:
        super().__init__(options, schema)
        self.options = options
        self.feed = options.feed
        self._connection: Connection | None = None
        with closing(connect(self.conninfo, name=NAME)) as connection, translated():
            (self._first,) = one(
                connection, "select number << 40 from pgcombine_internal.require_feed(%s)", options.feed
            )

    def _ask(self, call: str, *arguments: Any) -> Any:
        """Return the result of a call. If the connection was lost, the call is made again over a new one."""
        kept = self._connection
        if kept is not None and not kept.closed:
            try:
                with translated():
                    return one(kept, call, *arguments)[0]
            except psycopg.OperationalError:
                if not kept.closed:
                    raise
        self._connection = connect(self.conninfo, name=NAME)
        with translated():
            return one(self._connection, call, *arguments)[0]

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()

    def _present(self) -> Offset:
        present: Offset = self._ask("select pgcombine_internal.feed_offset(%s)", self.feed)
        return present

    def _portion(self, after: Offset, most: int | None = None) -> Offset:
        """Return the offset at which the next portion, of at most ``most`` changes (None: no maximum), ends."""
        upto: Offset = self._ask("select pgcombine_internal.feed_offset(%s, %s, %s)", self.feed, Jsonb(after), most)
        return upto

    def _start(self, otherwise: str) -> Offset:
        """Return the offset that the option ``startingOffsets`` names, else the one that ``otherwise`` names."""
        given = self.options.start or otherwise
        present = self._present()  # raises if the role lacks the right
        if given == "latest":
            return present
        start: Offset = self._ask(_LOW, self.feed, Jsonb({} if given == "earliest" else json.loads(given)))
        return start

    def _parts(self, after: Offset, upto: Offset) -> list[InputPartition]:
        """Return a part for each bucket that has changes between two offsets; all those of a bucket that is new."""
        after = dict.fromkeys(upto, self._first) | after
        return [
            self._part(after, {**after, bucket: sequence})
            for bucket, sequence in upto.items()
            if sequence > after[bucket]
        ]

    def _part(self, after: Offset, upto: Offset) -> InputPartition:
        name = sql.Identifier("pgcombine", f"{self.feed}_read")
        read = sql.SQL("{}(after => {}, upto => {})").format(name, json.dumps(after), json.dumps(upto))
        return Partition(read.as_string(None), "_after is null")  # the first row has only an offset


class FeedReader(_Changes, DataSourceReader):  # type: ignore[misc]
    """Reads the changes between ``startingOffsets`` and ``endingOffsets`` into a frame."""

    def __init__(self, options: Options, schema: StructType) -> None:
        if options.most or options.consumer is not None:
            name = "maxChangesPerTrigger" if options.most else "consumer"
            raise ConfigError(f'the option "{name}" is only for streams: leave it out')
        super().__init__(options, schema)

    @brief()
    def partitions(self) -> Sequence[InputPartition]:
        """Return a part for each bucket that has changes, or one empty part.

        If the queue was rebucketed, the changes of a bucket before and after that are separate parts.
        """
        with closing(self):
            return self._planned()

    def _planned(self) -> list[InputPartition]:
        after = self._start("earliest")
        end = self._present()
        if self.options.end != "latest":
            end = json.loads(self.options.end)
            self._ask(_LOW, self.feed, Jsonb(end))
            for bucket, sequence in end.items():
                if sequence < after[bucket]:
                    raise ConfigError(
                        f"the sequence {sequence} of bucket {bucket} in endingOffsets is before the one in "
                        f"startingOffsets, {after[bucket]}: give a later one"
                    )
        parts: list[InputPartition] = []
        while (upto := _limited(self._portion(after), end, after)) != after:
            parts += self._parts(after, upto)
            after = upto
        return parts or [self._part(after, after)]  # given no part, Spark makes one that isn't a Partition


class FeedStreamReader(_Changes, DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Reads the changes of a feed as a stream."""

    def __init__(self, options: Options, schema: StructType) -> None:
        if options.end != "latest":
            raise ConfigError('the option "endingOffsets" is only for spark.read: leave it out')
        super().__init__(options, schema)
        # Where the next batch begins. PySpark before 4.2 doesn't pass this to latestOffset(), so partitions() keeps it.
        self._known: dict[str, Any] | None = None
        self._initial: dict[str, Any] | None = None
        self._target: Offset | None = None  # where a stream with the trigger availableNow ends

    @brief()
    def initialOffset(self) -> dict[str, Any]:
        """Return the offset at which the next batch begins: the end of the last known batch, or a new query's start."""
        self._known = self._initial = self._known or self._start("latest")
        return self._known

    def getDefaultReadLimit(self) -> Any:
        """Return the limit that Spark passes to :meth:`latestOffset`."""
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

        return ReadMaxRows(self.options.most) if self.options.most else ReadAllAvailable()

    @brief()
    def prepareForTriggerAvailableNow(self) -> None:
        """Note the present offset, at which the query ends."""
        self._target = self._present()

    @brief()
    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:
        """Return the offset at which the next batch ends. PySpark before 4.2 passes no arguments."""
        most = self.options.most if limit is None else getattr(limit, "max_rows", None)
        given = start or self.initialOffset()
        after = _vector(given)
        upto = self._portion(after, most)
        if (target := self._target) is not None:
            upto = _limited(upto, target, after)
            while upto == after and any(after.get(bucket, 0) < last for bucket, last in target.items()):
                # a small portion may have only changes that are newer than the target
                upto = _limited(self._portion(after, most), target, after)
        elif upto == after:
            time.sleep(_IDLE_SECONDS)
        if after == _vector(self._initial or {}) and (upto != after or _BEGIN not in given):
            return {**upto, _BEGIN: after}
        return given if upto == after else upto

    @brief()
    def reportLatestOffset(self) -> dict[str, Any]:
        """Return the offset of the newest change, for the query's progress. PySpark before 4.2 doesn't ask."""
        return self._present()

    @brief()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return a part for each bucket that has changes in a batch."""
        self._known = end
        start, end = end.get(_BEGIN) or _vector(start), _vector(end)
        self._ask(_LOW, self.feed, Jsonb(end))  # raises if the database is older than the checkpoint
        if _limited(self._portion(start), end, start) != end or any(end[one] < last for one, last in start.items()):
            raise ConfigError(
                f'Spark asks for a batch that feed "{self.feed}" doesn\'t have: from {start} to {end}. '
                "Start the query with a new checkpoint"
            )
        return self._parts(start, end)

    @brief()
    def commit(self, end: dict[str, Any]) -> None:
        """Commit the offset for the consumer that the option ``consumer`` names, if it is given."""
        if self.options.consumer is not None:
            self._ask("select pgcombine.commit_feed(%s, %s, %s)", self.feed, self.options.consumer, Jsonb(_vector(end)))

    def stop(self) -> None:
        """Close the connection."""
        self.close()


def _vector(offset: dict[str, Any]) -> Offset:
    return {bucket: last for bucket, last in offset.items() if bucket != _BEGIN}


def _limited(upto: Offset, end: Offset, after: Offset) -> Offset:
    """Return ``upto``, but no sequence beyond ``end``.

    A bucket that ``end`` lacks gets at most its sequence in ``after``. If ``after`` lacks it, too, it is left out.
    """
    limited = {bucket: min(last, end.get(bucket, after.get(bucket, -1))) for bucket, last in upto.items()}
    return {bucket: last for bucket, last in limited.items() if last >= 0}
