"""Migration operations for Django.

Add ``"pgcombine.django"`` to ``INSTALLED_APPS``: ``manage.py migrate`` then makes and upgrades pgcombine's schema. Each
function here returns an operation for the list ``operations`` of a migration, with its reverse operation::

    import pgcombine.django

    operations = [pgcombine.django.create_queue("post_views", key=["post bigint"], value=["n bigint sum"])]

For other functions of pgcombine, ``migrations.RunSQL`` does the same. A test case that commits empties the queues with
:class:`pgcombine.django.test.EmptyQueues`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.migrations import RunSQL

from pgcombine import operations
from pgcombine.django.apps import is_used
from pgcombine.operations import Option

__all__ = ["add_observer", "create_budget", "create_queue", "create_rollup", "create_tier"]


class RunStatement(RunSQL):
    """A statement for the databases that get pgcombine's schema. Other databases aren't changed."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        """Run the statement."""
        if is_used(schema_editor.connection.alias):
            super().database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        """Run the reverse statement."""
        if is_used(schema_editor.connection.alias):
            super().database_backwards(app_label, schema_editor, from_state, to_state)


def create_queue(queue: str, *, key: Sequence[str], value: Sequence[str], **options: Option) -> RunSQL:
    """Return an operation that creates a queue, as ``pgcombine.create_queue`` does.

    ``key`` and ``value`` are column definitions (``["word text"]``, ``["n bigint sum"]``). ``options`` are further
    options of that function. Raises ConfigError for an unknown option. The reverse operation drops the queue with its
    values.
    """
    return _reversible(operations.CreateCombineQueue(queue, key, value, options))


def create_tier(queue: str, *, source: str, key: Sequence[str], **options: Option) -> RunSQL:
    """Return an operation that creates a queue which another queue feeds, as ``pgcombine.create_tier`` does.

    ``key`` has expressions over the key columns of ``source``. Raises ConfigError for an unknown option.
    """
    return _reversible(operations.CreateTier(queue, source, key, options))


def create_rollup(rollup: str, *, source: str, key: Sequence[str], value: Sequence[str], **options: Option) -> RunSQL:
    """Return an operation that creates an aggregate of a table, as ``pgcombine.create_rollup`` does.

    Workers backfill it. ``key`` has expressions over the table's columns, and ``value`` has aggregates. Raises
    ConfigError for an unknown option.
    """
    made = {"source": source, "key": list(key), "value": list(value), **options}
    return _reversible(operations.CreateRollup(rollup, made))


def create_budget(budget: str, *, key: Sequence[str], **options: Option) -> RunSQL:
    """Return an operation that creates amounts from which transactions take, as ``pgcombine.create_budget`` does.

    ``options`` are further options of :class:`pgcombine.Budget`. Raises ConfigError for an unknown option. The reverse
    operation drops the budget with its queue.
    """
    return _reversible(operations.CreateBudget(budget, {"key": list(key), **options}))


def add_observer(queue: str, observer: str, statement: str) -> RunSQL:
    """Return an operation that adds an observer, as ``pgcombine.add_observer`` does."""
    name, of = operations.literal(observer), operations.literal(queue)
    return RunStatement(
        f"select pgcombine.add_observer({of}, {name}, {operations.literal(statement)})",
        f"select pgcombine.drop_observer({of}, {name})",
    )


def _reversible(
    operation: operations.CreateCombineQueue
    | operations.CreateTier
    | operations.CreateRollup
    | operations.CreateBudget,
) -> RunSQL:
    return RunStatement(operation.call, operation.reverse().call)
