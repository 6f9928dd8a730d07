"""Test support for Django."""

from __future__ import annotations

from typing import Any

from django.db import connections


class EmptyQueues:
    """Empties all queues after each test. Put it before ``TransactionTestCase`` in the list of base classes.

    Django flushes only the tables of models. Feeds and exports get a deletion of each key, and observers get nothing.
    Rollups await a backfill, as after a migration. A ``TestCase`` doesn't need this, since its transaction rolls back.
    """

    _databases_names: Any

    def _fixture_teardown(self) -> None:
        super()._fixture_teardown()  # type: ignore[misc]
        for alias in self._databases_names(include_mirrors=False):
            if connections[alias].vendor != "postgresql":
                continue
            with connections[alias].cursor() as cursor:
                cursor.execute("select to_regclass('pgcombine.queue')")
                if cursor.fetchone() != (None,):
                    # a queue before its tiers
                    cursor.execute("select pgcombine.truncate_queue(queue) from pgcombine.queue order by created_at")
