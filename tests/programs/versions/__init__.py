"""Versions of this product side by side, on the same work and the same server.

``python -m tests.programs.versions c168364 2da02cb .`` measures three versions in turn, and prints a table of ratios to
the first one. ``.`` is the working tree as it is now. How to read it:

- **A cell** is the median of the rounds, and in brackets the median of the rounds' ratios to the first version, with
  the least and the greatest one. A spread that contains 1 shows no difference. More is better for rates only.
- **Rates and times depend on what else the machine does.** µs of processor time do so less, bytes of log hardly at all.
  A version beside itself (``. .``) shows how far the ratios can be trusted.
- **Totals are exact.** They are compared key by key with what was committed, after each turn. ✗ marks wrong ones.
- **How the log was reclaimed** is told of each version, by what its turns have left: deleted rows, truncated tables.
  The queues' owner is an ordinary role, a member of ``pg_read_all_stats``. ``--deleting`` takes the membership away,
  and keeps a session of another role open, whose snapshots are hidden then. "Nothing yet": the turns were too short.

All have the same server and settings (``synchronous_commit``, ``fsync`` and ``full_page_writes`` are on), keys,
transactions, pgbench, a new database a turn, and a rotated order. A version has an environment of its own with its own
package. Its own ``db upgrade`` makes the schema, its own ``worker`` combines. Besides these, only what every version
has is used: ``create_queue``, inserts and COPY into ``<queue>_updates``, ``combine``, ``backlog``, ``<queue>_values``.

- ``end-to-end-1``, ``-10``, ``-100``: 8 clients write so many rows a transaction, until all are in the values. Tables
  are filled by 100,000 updates before, as in ``freshness``, ``share`` and ``idle-after``.
- ``statement-1``, ``-10``, ``-100``: a session alone, without client and worker. A loop in PL/pgSQL commits each time,
  with ``synchronous_commit`` off and generic plans. The least of four slices, above that of a bare table.
- ``pass``: ``combine`` by one session, over 1 to 10,000 updates of 120,000 keys in one bucket, the log empty. Medians.
  ``pass-beside``: the same beside 200,000 combined rows in the log.
- ``idle``: one update every 20 ms on average in a new queue, until it is in the values. ``idle-100``: the same beside a
  hundred other queues. ``idle-after``: the same after the filling and a rest of 3 s.
- ``freshness``: an update at random times, beside a load of half of the version's own highest rate.
- ``share-1``, ``-10``: the server's processor time an update, 8 clients alone, then with the worker until all is done.
- ``session-log``: write-ahead log that a writer's own session writes, at 100 rows a transaction. PostgreSQL 18.
"""
