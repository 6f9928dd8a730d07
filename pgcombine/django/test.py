"""Test support for Django."""

from __future__ import annotations

from typing import Any

from django.db import connections

_TRUNCATE = """
select pgcombine.truncate_queue(q.queue) from pgcombine.queue q
where not exists (select from pgcombine.rollup r where r.queue = q.queue)
order by q.queue
"""


class EmptyQueues:
    """Empties all queues after each test. Put it before ``TransactionTestCase`` in the list of base classes.

    Django flushes only the tables of models. Rollups follow their flushed tables. A ``TestCase`` doesn't need this,
    since its transaction rolls back. A queue with a feed, an export or a tier can't be emptied, which raises Django's
    ``DatabaseError``.
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
                    cursor.execute(_TRUNCATE)
