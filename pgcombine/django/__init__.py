"""Migration operations for Django.

Add ``"pgcombine.django"`` to ``INSTALLED_APPS``: ``manage.py migrate`` then makes and upgrades pgcombine's schema. Each
function here returns an operation for the list ``operations`` of a migration, with its reverse operation::

    import pgcombine.django

    operations = [pgcombine.django.create_queue("post_views", key=["post bigint"], value=["n bigint sum"])]

The parameters are those of the functions in :mod:`pgcombine.operations`. :func:`undo` exchanges an operation and its
reverse operation, and so drops a queue, an observer or a feed. For other functions of pgcombine, ``migrations.RunSQL``
does the same. A test case that commits empties the queues with :class:`pgcombine.django.test.EmptyQueues`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

from django.db.migrations import RunSQL

from pgcombine import operations
from pgcombine.django.apps import is_used

__all__ = [
    "add_observer",
    "create_budget",
    "create_feed",
    "create_queue",
    "create_rollup",
    "create_tier",
    "grant_right",
    "rebucket",
    "undo",
]

P = ParamSpec("P")


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


def undo(operation: RunSQL) -> RunSQL:
    """Return the operation that reverses ``operation``, and is reversed by it."""
    return RunStatement(operation.reverse_sql, operation.sql)


def _operation(make: Callable[P, operations.Statement]) -> Callable[P, RunSQL]:
    @wraps(make)
    def run(*arguments: P.args, **options: P.kwargs) -> RunSQL:
        made = make(*arguments, **options)
        return RunStatement(made.text, RunSQL.noop if made.undo is None else made.undo.text)

    return run


create_queue = _operation(operations.create_combine_queue)
create_tier = _operation(operations.create_tier)
create_rollup = _operation(operations.create_rollup)
create_budget = _operation(operations.create_budget)
rebucket = _operation(operations.rebucket)
add_observer = _operation(operations.add_observer)
create_feed = _operation(operations.create_feed)
grant_right = _operation(operations.grant_right)
