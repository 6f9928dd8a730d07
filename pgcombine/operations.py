"""Alembic operations for pgcombine, and filters that keep autogenerate away from pgcombine's tables.

Import the module in the migrations' ``env.py``. Then ``op`` has each function of this module that returns a
:class:`Statement`::

    import pgcombine.operations

    def upgrade() -> None:
        op.upgrade_pgcombine()
        op.create_combine_queue("wc", key=["word text"], value=["n bigint sum"], delete_when="n = 0", buckets=4)
        op.create_tier("letters", source="wc", key=["left(word, 1) as letter"])
        op.create_rollup("spend", source="requests", key=["customer"], value=["sum(tokens) as tokens"])
        op.create_budget("seats", key=["show int"])
        op.add_observer("wc", "history", "insert into public.history select word, new_n from changes")
        op.create_feed("wc_feed", "wc")
        op.grant_right("enqueue", "app", "wc")

    def downgrade() -> None:
        op.revoke_right("enqueue", "app", "wc")
        op.drop_feed("wc_feed")
        op.drop_observer("wc", "history")
        op.drop_budget("seats", force=True)
        op.drop_rollup("spend")
        op.drop_combine_queue("letters", force=True)
        op.drop_combine_queue("wc", force=True)
        op.remove_pgcombine()

For type checkers, which don't know operations that a program adds to ``op``, write
``op.invoke(pgcombine.operations.drop_feed("wc_feed"))``.

The operations run in the migration's transaction. Offline (``alembic upgrade --sql``) they print SQL statements. They
raise the errors that their SQL functions name. If the database has no pgcombine schema, or one that lacks the
operation's SQL function, they raise :class:`~pgcombine.errors.SchemaMissingError`.

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
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, ParamSpec

from alembic.operations import MigrateOperation, Operations
from psycopg import sql
from sqlalchemy.exc import DBAPIError

from pgcombine import schema
from pgcombine.budget import Budget
from pgcombine.database import sqlfiles
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
P = ParamSpec("P")


class Statement(MigrateOperation):
    """A statement of SQL for a migration. ``undo`` takes back what it does; None: nothing does."""

    def __init__(self, text: str, undo: Statement | None = None, *, function: str) -> None:
        self.text = text
        self.undo = undo
        self.function = function


def _operation(make: Callable[P, Statement]) -> Callable[P, Statement]:
    """Let Alembic's ``op`` have an operation of the function's name, too."""

    def run(cls: type[Any], operations: Operations, /, *arguments: P.args, **options: P.kwargs) -> None:
        operations.invoke(make(*arguments, **options))

    run.__name__, run.__doc__ = make.__name__, make.__doc__
    Operations.register_operation(make.__name__)(type(make.__name__, (), {make.__name__: classmethod(run)}))
    return make


@Operations.implementation_for(Statement)
def _run(operations: Operations, statement: Statement) -> None:
    """Run the statement; offline, print it."""
    context = operations.get_context()
    if context.as_sql:
        context.impl.static_output(statement.text + context.impl.command_terminator)
        return
    try:
        with translated_sqlalchemy():
            operations.get_bind().exec_driver_sql(statement.text, execution_options={"no_parameters": True})
    except DBAPIError as error:
        state = getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None)
        too_old = state == "42883" and f"{statement.function}(" in str(error.orig)  # undefined_function
        if state != "3F000" and not too_old:  # invalid_schema_name
            raise
        raise SchemaMissingError(
            f"{statement.function}: the database has no pgcombine schema, or one that is too old for this operation: "
            "upgrade it before, by op.upgrade_pgcombine() or 'pgcombine db upgrade'",
            sqlstate=state,
        ) from error


@_operation
def upgrade_pgcombine() -> Statement:
    """Make pgcombine's schema, or upgrade it to the version of the program that runs the migration.

    The statement is that of ``pgcombine db upgrade --sql``. If another session uses pgcombine, the statement waits for
    its locks as long as ``lock_timeout`` says, or for a minute. If the schema is this version's, little happens. So
    an application that installs a newer pgcombine adds a migration with this operation.
    """
    text = schema.upgrade_sql().strip().removesuffix(";")
    return Statement(text, remove_pgcombine(), function="upgrade_pgcombine")


@_operation
def remove_pgcombine(*, force: bool = False) -> Statement:
    """Drop pgcombine's schema. Raises QueueNotEmptyError if it has queues, unless ``force`` is set.

    A transaction has room for a limited number of locks: ``pgcombine db remove`` drops many queues in several ones.
    """
    text = sqlfiles.query("remove_at_once").replace("{force}", _literal(force)).strip()
    return Statement(text, function="remove_pgcombine")


@_operation
def create_combine_queue(
    queue: str,
    *,
    key: Sequence[str],
    value: Sequence[str],
    delete_when: str | None = None,
    buckets: int = 1,
    **options: Option,
) -> Statement:
    """Create a combine queue, as ``pgcombine.create_queue`` does.

    ``key`` and ``value`` are column definitions (``["word text"]``, ``["n bigint sum"]``). ``options`` are further
    options of that function, except ``if_not_exists``. Raises ConfigError for an unknown option. The reverse operation
    drops the queue, even if updates are pending.
    """
    options = {"key": key, "value": value, "delete_when": delete_when, "buckets": buckets, **options}
    return _call("create_queue", queue, options=options, known=_OPTIONS, undo=drop_combine_queue(queue, force=True))


@_operation
def create_tier(queue: str, *, source: str, key: Sequence[str], **options: Option) -> Statement:
    """Create a queue that another queue feeds, as ``pgcombine.create_tier`` does.

    ``key`` has expressions over the key columns of ``source`` (``["date_trunc('day', hour) as day"]``). ``options`` are
    further options of that function, except ``if_not_exists``. Raises ConfigError for an unknown option. The reverse
    operation drops the queue, even if updates are pending.
    """
    options = {"source": source, "key": key, **options}
    return _call("create_tier", queue, options=options, known=_TIER_OPTIONS, undo=drop_combine_queue(queue, force=True))


@_operation
def drop_combine_queue(queue: str, *, force: bool = False) -> Statement:
    """Drop a queue with its values, as ``pgcombine.drop_queue`` does.

    Raises WaitTimeoutError if other sessions use the queue's tables for too long. Without ``force``, raises
    QueueNotEmptyError, for example while updates are pending or quarantined, or if the queue feeds a tier.
    """
    return _call("drop_queue", queue, options={"force": force})


@_operation
def create_rollup(
    rollup: str, *, source: str, key: Sequence[str], value: Sequence[str], **options: Option
) -> Statement:
    """Create an aggregate of a table, as ``pgcombine.create_rollup`` does, and leave the backfill to workers.

    Writers of the table wait until the migration's transaction ends. ``key`` has expressions over the table's columns,
    and ``value`` has aggregates (``["count(*) as requests"]``). ``options`` are further options of that function,
    except ``if_not_exists``. Raises ConfigError for an unknown option. The reverse operation drops the rollup.
    """
    options = {"source": source, "key": key, "value": value, **options}
    return _call("create_rollup", rollup, options=options, known=_ROLLUP_OPTIONS, undo=drop_rollup(rollup, force=True))


@_operation
def drop_rollup(rollup: str, *, force: bool = False) -> Statement:
    """Drop a rollup, as ``pgcombine.drop_rollup`` does. The table that it aggregates stays.

    Without ``force``, raises QueueNotEmptyError, for example if the rollup is exported or feeds a tier. Raises
    InvalidDefinitionError if the queue isn't a rollup.
    """
    return _call("drop_rollup", rollup, options={"force": force})


@_operation
def create_budget(budget: str, *, key: Sequence[str], **options: Option) -> Statement:
    """Create amounts from which transactions take, as ``pgcombine.create_budget`` does.

    ``options`` are further options of :class:`pgcombine.Budget`. Raises ConfigError for an unknown option. The reverse
    operation drops the budget with its queue.
    """
    options = {"key": key, **options}
    return _call("create_budget", budget, options=options, known=_BUDGET_OPTIONS, undo=drop_budget(budget, force=True))


@_operation
def drop_budget(budget: str, *, force: bool = False) -> Statement:
    """Drop a budget with its queue, as ``pgcombine.drop_budget`` does.

    Without ``force``, raises QueueNotEmptyError if amounts are held. Raises InvalidDefinitionError if the queue isn't a
    budget.
    """
    return _call("drop_budget", budget, options={"force": force})


@_operation
def rebucket(
    queue: str, buckets: int, *, buckets_per_partition: int | None = None, timeout: timedelta | None = None
) -> Statement:
    """Change the number of a queue's buckets, as ``pgcombine.rebucket`` does.

    At the end, writers wait until the migration's transaction ends. A downgrade may keep the number, since no result
    depends on it.
    """
    options: dict[str, Option] = {"buckets_per_partition": buckets_per_partition, "timeout": timeout}
    return _call("rebucket", queue, buckets, options=options)


@_operation
def add_observer(queue: str, observer: str, statement: str | None) -> Statement:
    """Add an observer, as ``pgcombine.add_observer`` does. The call waits for running passes.

    ``statement`` reads the relations ``changes`` or ``arrived``. None: the observer is a Python function of its name,
    which ``pgcombine worker --app`` runs.
    """
    options = {"language": "python"} if statement is None else {"statement": statement}
    return _call("add_observer", queue, observer, options=options, undo=drop_observer(queue, observer))


@_operation
def drop_observer(queue: str, observer: str) -> Statement:
    """Drop an observer, as ``pgcombine.drop_observer`` does. The call waits for running passes."""
    return _call("drop_observer", queue, observer)


@_operation
def create_feed(
    feed: str, queue: str, *, retention: timedelta | None = None, max_bytes: int | None = None
) -> Statement:
    """Keep the changes of a queue for consumers, as ``pgcombine.create_feed`` does. The call waits for running passes.

    ``retention`` is how long a change is kept at least (None: 7 days). ``max_bytes`` is the size up to which older
    changes stay for registered consumers (None: they don't stay).
    """
    options: dict[str, Option] = {"retention": retention, "max_bytes": max_bytes}
    return _call("create_feed", feed, queue, options=options, undo=drop_feed(feed))


@_operation
def drop_feed(feed: str) -> Statement:
    """Drop a feed, as ``pgcombine.drop_feed`` does. The call waits for running passes, and for readers of the feed."""
    return _call("drop_feed", feed)


@_operation
def grant_right(right: str, role: str, *queues: str) -> Statement:
    """Grant a right to a role, as ``pgcombine.grant_right`` does: on the named queues, or without names on all."""
    return _call("grant_right", right, role, *queues, undo=revoke_right(right, role, *queues))


@_operation
def revoke_right(right: str, role: str, *queues: str) -> Statement:
    """Revoke a right from a role, as ``pgcombine.revoke_right`` does."""
    return _call("revoke_right", right, role, *queues)


def include_name(name: str | None, type_: str, parent_names: Any) -> bool:
    """Return False for pgcombine's schemas and the names in them. For ``context.configure(include_name=…)``."""
    return (name if type_ == "schema" else parent_names.get("schema_name")) not in SCHEMAS


def include_object(object_: Any, name: str | None, type_: str, reflected: bool, compare_to: Any) -> bool:
    """Return False for pgcombine's tables and their parts. For ``context.configure(include_object=…)``.

    The result is also False for tables of pgcombine that your models map.
    """
    table = object_ if type_ == "table" else getattr(object_, "table", None)
    return getattr(table, "schema", None) not in SCHEMAS


def _call(
    function: str,
    *arguments: Option,
    options: Mapping[str, Option] | None = None,
    known: frozenset[str] | None = None,
    undo: Statement | None = None,
) -> Statement:
    function, named = f"pgcombine.{function}", options or {}
    for option in named:
        if known is not None and option not in known:
            raise ConfigError(f"{option!r} is no option of {function}; its options: {', '.join(sorted(known))}")
    given = [f"{name} => {_literal(value)}" for name, value in named.items() if value is not None]
    text = f"select {function}({', '.join([*map(_literal, arguments), *given])})"
    return Statement(text, undo, function=function)


def _literal(value: Option) -> str:
    if value is None or isinstance(value, (str, int, timedelta)):  # int includes bool
        return sql.Literal(value).as_string(None).strip()
    return f"array[{', '.join(map(_literal, value))}]::text[]"
