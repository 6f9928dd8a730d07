"""Writing into a front: a queue whose shards are queues on other servers, the nodes.

Tasks ask the front for the shard of each row, and COPY the rows to the nodes. Each shard has a separate load
(:mod:`pgcombine.spark.loads`), with the run id of the whole job. At the end the driver applies all loads, and commits
when every node has accepted its rows. The nodes commit one after the other. So if the driver dies in between, some
nodes have applied the run, and others haven't. Another job with the same run id writes the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID, uuid5

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from pgcombine.database.connect import Connection, connect, one
from pgcombine.database.sqlfiles import query
from pgcombine.errors import (
    ConfigError,
    ConnectError,
    LoadError,
    PgCombineError,
    QueueNotFoundError,
    first_line,
    translated,
)
from pgcombine.spark.copying import copy_batches, key_texts, refuse_unfit
from pgcombine.spark.loads import NAME, Load, patiently, refused
from pgcombine.spark.options import Options
from pgcombine.spark.target import Target
from pgcombine.spark.writing import Writing, Written, attempts_at, fitting, say_skipped

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import WriterCommitMessage
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class Shard:
    """A shard of a front: its queue, and the node that had it when the job began."""

    queue: str
    node: str
    conninfo: str = field(repr=False)


@dataclass(frozen=True)
class FrontLoad(Load):
    """A load into a front. ``shards`` has a load for each shard, in the order of the shards' numbers."""

    shards: tuple[Load, ...] = ()

    def give_up(self) -> None:
        """Remove the loads of all shards. Rows that were applied stay."""
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(Load.give_up, self.shards))


@dataclass(frozen=True)
class FrontWriting(Writing):
    """What the tasks get from the driver. ``conninfo`` is the front's database. ``shards`` are ordered by number."""

    shards: tuple[Shard, ...] = ()

    @classmethod
    def reached(cls, options: Options, schema: StructType) -> FrontWriting:
        """Look up the places of the shards, connect to each node, and check the frame's columns."""
        conninfo = Target.of(options.dsn).conninfo
        with closing(connect(conninfo, name=NAME)) as front, translated(queue=options.queue):
            places = front.execute(query("shard_places"), (options.queue,)).fetchall()
        roles = {address["user"]: node for _, node, address in places}
        if len(roles) > 1:  # a run counts once for each role: it would count again after a shard moved
            raise ConfigError(
                f'the user mappings of front "{options.queue}" name different roles: '
                + ", ".join(f'"{role}" on node "{node}"' for role, node in sorted(roles.items())),
                hint="map the caller to the same role on each node",
            )
        nodes = {node: make_conninfo(**address) for _, node, address in places}
        for node, address in nodes.items():
            with _at(node):
                nodes[node] = Target.of(address).conninfo
        shards = tuple(Shard(queue, node, nodes[node]) for queue, node, _ in places)
        with _at(shards[0].node):
            keys = fitting(shards[0].conninfo, shards[0].queue, schema, options.queue)
        return cls(conninfo, options, keys, shards)

    def load(self, run_id: str, load: UUID) -> FrontLoad:
        loads = (Load(shard.conninfo, shard.queue, run_id, load=uuid5(load, shard.queue)) for shard in self.shards)
        return FrontLoad(self.conninfo, self.options.queue, run_id, load=load, shards=tuple(loads))

    def begin(self, load: Load) -> bool:
        """Begin the load on each node. Returns False if each shard has applied the run already."""
        assert isinstance(load, FrontLoad)
        applied: list[Load] = []
        try:
            for node, loads in self._by_node(load).items():
                with _at(node), closing(connect(loads[0].conninfo, name=NAME)) as connection:
                    applied += [part for part in loads if part.begin(connection) is None]
        except BaseException:
            load.give_up()
            raise
        if len(applied) == len(self.shards):
            return False
        for part in applied:
            say_skipped(part)
        return True

    def write(self, load: Load, batches: Iterator[pa.RecordBatch], *, join_only: bool) -> Written:
        """Write the rows of one task, in one transaction on each node. Shards that have applied the run get none."""
        assert isinstance(load, FrontLoad)
        rows: Counter[str] = Counter()
        nodes: dict[str, _Node] = {}
        with ExitStack() as stack:
            front = None
            for batch in batches:
                front = front or stack.enter_context(closing(connect(self.conninfo, name=NAME)))
                for shard, part in self._parts(front, batch):
                    if shard.node not in nodes:
                        with _at(shard.node):
                            connection = stack.enter_context(closing(connect(shard.conninfo, name=NAME)))
                            nodes[shard.node] = _Node.of(connection, self._by_node(load)[shard.node], join_only)
                    node = nodes[shard.node]
                    if (table := node.tables[shard.queue]) is None:
                        continue
                    with _at(shard.node):
                        rows[shard.queue] += copy_batches(
                            node.connection,
                            sql.Identifier("pgcombine", table),
                            [part],
                            queue=self.options.queue,
                            keys=self.keys,
                        )
            for name, node in nodes.items():
                with _at(name):
                    node.connection.commit()
        # with the shards that got no row, since this task may have begun their loads
        begun = [(queue, node.attempt) for node in nodes.values() for queue, table in node.tables.items() if table]
        return Written(load.load, load.run_id, {queue: (attempt, rows[queue]) for queue, attempt in begun})

    def end(self, load: Load, messages: list[WriterCommitMessage | None]) -> None:
        """Apply the rows of all tasks. No node commits before all have accepted their rows."""
        assert isinstance(load, FrontLoad)
        begun = {queue for message in messages if message is not None for queue in message.attempts}
        for attempt in patiently():
            with attempt, ExitStack() as stack:
                nodes = {}
                for node, loads in self._by_node(load).items():
                    with _at(node):
                        connection = connect(loads[0].conninfo, name=NAME, autocommit=False)
                        nodes[node] = stack.enter_context(closing(connection))
                        for part in loads:
                            if self.options.run_id or part.queue in begun:  # a stream has no option runId
                                _hold(connection, part)
                                found = attempts_at(part.queue, messages)
                                part.end_in(connection, *found, preaggregate=self.options.preaggregate)
                for node, connection in nodes.items():
                    with _at(node):
                        connection.commit()

    def _by_node(self, load: FrontLoad) -> dict[str, list[Load]]:
        """Return the loads of the shards by node. The nodes have the same order in all jobs, to avoid deadlocks."""
        found: dict[str, list[Load]] = {node: [] for node in sorted({shard.node for shard in self.shards})}
        for shard, part in zip(self.shards, load.shards, strict=True):
            found[shard.node].append(part)
        return found

    def _parts(self, front: Connection, batch: pa.RecordBatch) -> Iterator[tuple[Shard, pa.RecordBatch]]:
        """Yield the rows of a batch by shard. The front finds the shards, since they depend on PostgreSQL's hash."""
        import pyarrow as pa
        import pyarrow.compute as pc

        queue = self.options.queue
        refuse_unfit(batch, queue, self.keys)
        texts = key_texts(batch, self.keys)
        with translated(queue=queue), refused(queue):
            (numbers,) = one(front, "select pgcombine_internal.shards_of(%s, %s::text[])", queue, texts)
        for number in sorted(set(numbers)):
            yield self.shards[number], batch.filter(pc.equal(pa.array(numbers), number))


@dataclass(frozen=True)
class _Node:
    """A task's transaction on a node, its id, and the stages there by queue.

    None stands for the stage of a shard that has applied the run.
    """

    connection: Connection
    attempt: str
    tables: dict[str, str | None]

    @classmethod
    def of(cls, connection: Connection, loads: list[Load], join_only: bool) -> _Node:
        """Join or begin the loads, each in a separate transaction. Then open the transaction that writes the rows.

        While a load begins, other tasks wait for it.
        """
        tables = {load.queue: load.begin(connection, join_only=join_only) for load in loads}
        connection.autocommit = False
        for load in loads:
            _hold(connection, load)
        (attempt,) = one(connection, "select pg_current_xact_id()")
        return cls(connection, attempt, tables)


def _hold(connection: Connection, load: Load) -> None:
    """Keep the load's stage, and switch off timeouts: the transaction may wait for Spark, or for another node."""
    connection.execute("select pgcombine_internal.hold_load(%s)", (load.load,))


@contextmanager
def _at(node: str) -> Iterator[None]:
    """Name the node in an error of the connection.

    Raises LoadError if a shard has moved away from the node, or is being moved.
    """
    try:
        yield
    except (ConnectError, psycopg.OperationalError) as error:
        raise ConnectError(f'node "{node}": {first_line(error)}') from error
    except PgCombineError as error:
        if not isinstance(error, QueueNotFoundError) and error.sqlstate != "PC015":
            raise
        raise LoadError(
            f'node "{node}": {first_line(error)}', hint="if the shard has moved, run the job again with the same run id"
        ) from error
