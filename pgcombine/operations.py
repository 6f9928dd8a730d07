"""Alembic operations for combine queues, and filters that keep autogenerate away from pgcombine's tables.

Import the module in the migrations' ``env.py``. Then ``op`` has seven more operations::

    import pgcombine.operations

    def upgrade() -> None:
        op.create_combine_queue("wc", key=["word text"], value=["n bigint sum"], delete_when="n = 0", buckets=4)
        op.create_tier("letters", source="wc", key=["left(word, 1) as letter"])
        op.create_rollup("spend", source="requests", key=["customer"], value=["sum(tokens) as tokens"])
        op.create_budget("seats", key=["show int"])

    def downgrade() -> None:
        op.drop_budget("seats", force=True)
        op.drop_rollup("spend")
        op.drop_combine_queue("letters", force=True)
        op.drop_combine_queue("wc", force=True)

The operations run in the migration's transaction. Offline (``alembic upgrade --sql``) they print SQL statements. If the
database has no pgcombine schema, or one that lacks the operation's SQL function, they raise
:class:`~pgcombine.errors.SchemaMissingError`: run ``pgcombine db upgrade`` first.

Autogenerate proposes to drop tables that the models don't have. With two functions it ignores pgcombine's tables::

    context.configure(
        ...,
        include_name=pgcombine.operations.include_name,      # needed with include_schemas=True
        include_object=pgcombine.operations.include_object,
    )

If you already give functions of your own there, call pgcombine's functions in them.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from alembic.operations import MigrateOperation, Operations
from psycopg import sql
from sqlalchemy.exc import DBAPIError

from pgcombine.budget import Budget
from pgcombine.database.steps import translated_sqlalchemy
from pgcombine.errors import ConfigError, SchemaMissingError
from pgcombine.queue.combine_queue import CombineQueue
from pgcombine.rollup.rollup import Rollup

SCHEMAS = frozenset({"pgcombine", "pgcombine_internal", "phrasecount"})  # phrasecount is the example application's

_OPTIONS = frozenset(inspect.signature(CombineQueue).parameters) - {"name"}
_TIER_OPTIONS = (_OPTIONS - {"value", "delete_when", "max_backlog"}) | {"source", "existing"}
_ROLLUP_OPTIONS = frozenset(inspect.signature(Rollup).parameters) - {"name"}
_BUDGET_OPTIONS = frozenset(inspect.signature(Budget).parameters) - {"name"}

Option = str | int | bool | timedelta | None | Sequence[str]


@Operations.register_operation("create_combine_queue")
class CreateCombineQueue(MigrateOperation):
    """``op.create_combine_queue(queue, key=[…], value=[…], delete_when=…, buckets=…)``."""

    def __init__(self, queue: str, key: Sequence[str], value: Sequence[str], options: dict[str, Option]) -> None:
        self.queue = queue
        self.key = list(key)
        self.value = list(value)
        self.options = options

    @classmethod
    def create_combine_queue(
        cls,
        operations: Operations,
        queue: str,
        *,
        key: Sequence[str],
        value: Sequence[str],
        delete_when: str | None = None,
        buckets: int = 1,
        **options: Option,
    ) -> None:
        """Create a combine queue, as ``pgcombine.create_queue`` does.

        ``key`` and ``value`` are column definitions (``["word text"]``, ``["n bigint sum"]``). ``options`` are further
        options of that function, except ``if_not_exists``. Raises InvalidDefinitionError, QueueExistsError,
        SchemaMissingError, and ConfigError for an unknown option.
        """
        operations.invoke(cls(queue, key, value, {"delete_when": delete_when, "buckets": buckets, **options}))

    def reverse(self) -> DropCombineQueue:
        """Return the operation that drops the queue, even if updates are pending."""
        return DropCombineQueue(self.queue, force=True)

    function = "pgcombine.create_queue"

    @property
    def call(self) -> str:
        """The SQL statement of this operation."""
        return _call(self.function, self.queue, {"key": self.key, "value": self.value, **self.options}, _OPTIONS)


@Operations.register_operation("create_tier")
class CreateTier(MigrateOperation):
    """``op.create_tier(queue, source=…, key=[…], buckets=…)``."""

    def __init__(self, queue: str, source: str, key: Sequence[str], options: dict[str, Option]) -> None:
        self.queue = queue
        self.source = source
        self.key = list(key)
        self.options = options

    @classmethod
    def create_tier(
        cls, operations: Operations, queue: str, *, source: str, key: Sequence[str], **options: Option
    ) -> None:
        """Create a queue that another queue feeds, as ``pgcombine.create_tier`` does.

        ``key`` has expressions over the key columns of ``source`` (``["date_trunc('day', hour) as day"]``). ``options``
        are further options of that function, except ``if_not_exists``. Raises the errors of
        ``op.create_combine_queue``, and QueueNotFoundError.
        """
        operations.invoke(cls(queue, source, key, options))

    def reverse(self) -> DropCombineQueue:
        """Return the operation that drops the queue, even if updates are pending."""
        return DropCombineQueue(self.queue, force=True)

    function = "pgcombine.create_tier"

    @property
    def call(self) -> str:
        """The SQL statement of this operation."""
        arguments = {"source": self.source, "key": self.key, **self.options}
        return _call(self.function, self.queue, arguments, _TIER_OPTIONS)


@Operations.register_operation("drop_combine_queue")
class DropCombineQueue(MigrateOperation):
    """``op.drop_combine_queue(queue, force=False)``."""

    def __init__(self, queue: str, *, force: bool) -> None:
        self.queue = queue
        self.force = force

    @classmethod
    def drop_combine_queue(cls, operations: Operations, queue: str, *, force: bool = False) -> None:
        """Drop a queue with its values. Raises QueueNotFoundError if there is no such queue.

        Also raises WaitTimeoutError if other sessions use the queue's tables for too long.
        Without ``force``, also raises QueueNotEmptyError, for example while updates are pending or quarantined, or if
        the queue feeds a tier; and InvalidDefinitionError if the isolation level isn't read committed.
        """
        operations.invoke(cls(queue, force=force))

    function = "pgcombine.drop_queue"

    @property
    def call(self) -> str:
        """The SQL statement of this operation."""
        return f"select {self.function}({literal(self.queue)}, force => {literal(self.force)})"


@Operations.register_operation("create_rollup")
class CreateRollup(MigrateOperation):
    """``op.create_rollup(rollup, source=…, key=[…], value=[…], filter=…)``."""

    def __init__(self, queue: str, options: dict[str, Option]) -> None:
        self.queue = queue
        self.options = options

    @classmethod
    def create_rollup(
        cls,
        operations: Operations,
        rollup: str,
        *,
        source: str,
        key: Sequence[str],
        value: Sequence[str],
        **options: Option,
    ) -> None:
        """Create an aggregate of a table, as ``pgcombine.create_rollup`` does, and leave the backfill to workers.

        Writers of the table wait until the migration's transaction ends. ``key`` has expressions over the table's
        columns, and ``value`` has aggregates (``["count(*) as requests"]``). ``options`` are further options of that
        function, except ``if_not_exists``. Raises the errors of ``op.create_combine_queue``.
        """
        operations.invoke(cls(rollup, {"source": source, "key": list(key), "value": list(value), **options}))

    def reverse(self) -> DropRollup:
        """Return the operation that drops the rollup."""
        return DropRollup(self.queue, force=True)

    function = "pgcombine.create_rollup"

    @property
    def call(self) -> str:
        """The SQL statement of this operation."""
        return _call(self.function, self.queue, self.options, _ROLLUP_OPTIONS)


@Operations.register_operation("drop_rollup")
class DropRollup(DropCombineQueue):
    """``op.drop_rollup(rollup, force=False)``."""

    @classmethod
    def drop_rollup(cls, operations: Operations, rollup: str, *, force: bool = False) -> None:
        """Drop a rollup. The table that it aggregates stays.

        Without ``force``, raises QueueNotEmptyError, for example if the rollup is exported or feeds a tier. Raises
        InvalidDefinitionError if the queue isn't a rollup, and the errors of ``op.drop_combine_queue`` with ``force``.
        """
        operations.invoke(cls(rollup, force=force))

    function = "pgcombine.drop_rollup"


@Operations.register_operation("create_budget")
class CreateBudget(MigrateOperation):
    """``op.create_budget(budget, key=[…], amount="bigint")``."""

    def __init__(self, queue: str, options: dict[str, Option]) -> None:
        self.queue = queue
        self.options = options

    @classmethod
    def create_budget(cls, operations: Operations, budget: str, *, key: Sequence[str], **options: Option) -> None:
        """Create amounts from which transactions take, as ``pgcombine.create_budget`` does.

        ``options`` are further options of :class:`pgcombine.Budget`. Raises the errors of ``op.create_combine_queue``.
        """
        operations.invoke(cls(budget, {"key": list(key), **options}))

    def reverse(self) -> DropBudget:
        """Return the operation that drops the budget."""
        return DropBudget(self.queue, force=True)

    function = "pgcombine.create_budget"

    @property
    def call(self) -> str:
        """The SQL statement of this operation."""
        return _call(self.function, self.queue, self.options, _BUDGET_OPTIONS)


@Operations.register_operation("drop_budget")
class DropBudget(DropCombineQueue):
    """``op.drop_budget(budget, force=False)``."""

    @classmethod
    def drop_budget(cls, operations: Operations, budget: str, *, force: bool = False) -> None:
        """Drop a budget with its queue. Without ``force``, raises QueueNotEmptyError if amounts are held.

        Also raises the errors of ``op.drop_combine_queue``, and InvalidDefinitionError if the queue isn't a budget.
        """
        operations.invoke(cls(budget, force=force))

    function = "pgcombine.drop_budget"


Operation = CreateCombineQueue | CreateTier | CreateRollup | CreateBudget | DropCombineQueue


@Operations.implementation_for(CreateCombineQueue)
@Operations.implementation_for(CreateTier)
@Operations.implementation_for(CreateRollup)
@Operations.implementation_for(CreateBudget)
@Operations.implementation_for(DropCombineQueue)
@Operations.implementation_for(DropBudget)
@Operations.implementation_for(DropRollup)
def _run(operations: Operations, operation: Operation) -> None:
    """Run the statement; offline, print it."""
    context = operations.get_context()
    if context.as_sql:
        context.impl.static_output(operation.call + context.impl.command_terminator)
        return
    try:
        with translated_sqlalchemy(queue=operation.queue):
            operations.get_bind().exec_driver_sql(operation.call, execution_options={"no_parameters": True})
    except DBAPIError as error:
        state = getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None)
        too_old = state == "42883" and f"{operation.function}(" in str(error.orig)  # undefined_function
        if state != "3F000" and not too_old:  # invalid_schema_name
            raise
        raise SchemaMissingError(
            f'queue "{operation.queue}": the database has no pgcombine schema, or one that is too old for this '
            "operation: run 'pgcombine db upgrade' first",
            queue=operation.queue,
            sqlstate=state,
        ) from error


def include_name(name: str | None, type_: str, parent_names: Any) -> bool:
    """Return False for pgcombine's schemas and the names in them. For ``context.configure(include_name=…)``."""
    return (name if type_ == "schema" else parent_names.get("schema_name")) not in SCHEMAS


def include_object(object_: Any, name: str | None, type_: str, reflected: bool, compare_to: Any) -> bool:
    """Return False for pgcombine's tables and their parts. For ``context.configure(include_object=…)``.

    The result is also False for tables of pgcombine that your models map.
    """
    table = object_ if type_ == "table" else getattr(object_, "table", None)
    return getattr(table, "schema", None) not in SCHEMAS


def _call(function: str, queue: str, arguments: Mapping[str, Option], known: frozenset[str]) -> str:
    for option in arguments:
        if option not in known:
            raise ConfigError(f"{option!r} is no option of {function}; its options: {', '.join(sorted(known))}")
    named = [f"{name} => {literal(value)}" for name, value in arguments.items() if value is not None]
    return f"select {function}({', '.join([literal(queue), *named])})"


def literal(value: Option) -> str:
    if value is None or isinstance(value, (str, int, timedelta)):  # int includes bool
        return sql.Literal(value).as_string(None).strip()
    return f"array[{', '.join(map(literal, value))}]::text[]"
