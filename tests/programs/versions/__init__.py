"""Compare versions of this product, with the same work on the same server.

``python -m tests.programs.versions c168364 2da02cb .`` measures three versions in turn, and prints a table of ratios to
the first one. ``.`` is the working tree with its uncommitted changes. How to read the table:

- **A cell** is the median of the rounds. In brackets is the median of the rounds' ratios to the first version, with the
  least and the greatest ratio. If these enclose 1, the versions don't differ. More is better only for rates.
- **Rates and times depend on what else the machine does.** Processor time depends on that less, bytes of log hardly at
  all. A version beside itself (``. .``) shows how far the ratios can be trusted.
- **Totals are exact.** They are compared key by key with what was committed, after each turn. ✗ marks wrong ones.
- **How the log was reclaimed** is reported for each version from the traces in its tables: deleted rows or truncations.
  The queues' owner is an ordinary role, a member of ``pg_read_all_stats``. ``--deleting`` revokes the membership and
  keeps a session of another role open, whose snapshots are then hidden from the owner. "Nothing yet": the turns were
  too short.

All have the same server and settings (``synchronous_commit``, ``fsync`` and ``full_page_writes`` are on), keys,
transactions, pgbench, a new database a turn, and a rotated order. Each version has an environment with its own package,
whose ``db upgrade`` makes the schema and whose ``worker`` combines. The measurements also use what every version
has: ``create_queue``, inserts and COPY into ``<queue>_updates``, ``combine``, ``backlog``, ``<queue>_values``.

- ``end-to-end-1``, ``-10``, ``-100``: 8 clients write transactions of so many rows; the time ends when the values have
  all. Before, 100,000 updates fill the tables, as in ``freshness``, ``share`` and ``idle-after``.
- ``statement-1``, ``-10``, ``-100``: one session without a worker. A loop in PL/pgSQL commits each statement with
  ``synchronous_commit`` off and generic plans. The figure is the best of four slices, less that of a bare table.
- ``pass``: ``combine`` by one session, over 1 to 10,000 updates of 120,000 keys in one bucket, the log empty. Medians.
  ``pass-beside``: the same beside 200,000 combined rows in the log.
- ``idle``: one update every 20 ms on average in a new queue, until it is in the values. ``idle-100``: the same beside a
  hundred other queues. ``idle-after``: the same after the filling and a rest of 3 s.
- ``freshness``: an update at random times, beside a load of half of the version's own highest rate.
- ``share-1``, ``-10``: the server's processor time for an update: with 8 clients alone, then with the worker to the
  end.
- ``session-log``: write-ahead log that a writer's session itself writes, at 100 rows a transaction; needs PostgreSQL
  18.
"""
