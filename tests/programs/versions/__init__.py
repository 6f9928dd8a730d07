"""Compare versions of this product, with the same work on the same server.

``python -m tests.programs.versions c168364 2da02cb .`` measures three versions in turn, and prints a table of ratios to
the first one. ``.`` is the working tree with its uncommitted changes. How to read the table:

- **A cell** is the median of the rounds. In brackets is the median of the rounds' ratios to the first version, with the
  least and the greatest ratio. If 1 is between the least and the greatest ratio, the versions can't be told apart. Of
  rates more is better, of other metrics less.
- **Rates and times depend on what else the machine does.** Processor time and bytes of log depend on that less. A
  version beside itself (``. .``) shows how far the ratios can be trusted.
- **Totals are checked.** At the end of a turn the total of each key is compared with the committed updates. ✗ marks a
  version with wrong totals.
- **How the log was reclaimed** is reported for each version from the traces in its tables: deleted rows or truncations.
  The queues' owner is an ordinary role, a member of ``pg_read_all_stats``. With ``--deleting`` the owner isn't a
  member, and a session of another role stays open, whose snapshots are hidden from the owner. "Nothing yet" means that
  the tables have no such traces.

All versions have the same server, keys, transactions and pgbench. The server that the program starts has
``synchronous_commit``, ``fsync`` and ``full_page_writes`` on. Each turn has a new database, and the order of the
versions is rotated. Each version has an environment with its own package, whose ``db upgrade`` makes the schema and
whose ``worker`` combines. A measured version must also have ``create_queue``, ``<queue>_updates``, ``combine``,
``backlog`` and ``<queue>_values``.

``-1``, ``-10`` and ``-100`` in the name of a figure are numbers of rows in a transaction, except in ``idle-100``. The
figures, which are kinds of measurements, are:

- ``end-to-end-1``, ``-10``, ``-100``: 8 clients write until their time is over; the measured time ends when the values
  include all updates. Before the measurement 100,000 updates fill the tables, as in ``freshness``, ``share`` and
  ``idle-after``.
- ``statement-1``, ``-10``, ``-100``: one session without a worker. A loop in PL/pgSQL commits each statement with
  ``synchronous_commit`` off and generic plans. The figure is the time of a statement in the best of four slices, less
  that time for a table without a queue.
- ``pass``: ``combine`` by one session, over 1 to 10,000 updates of 120,000 keys in one bucket, with an empty log.
  ``pass-beside``: the same with 200,000 combined rows in the log.
- ``idle``: the time from an update to its value, in a new queue with a pause of 20 ms on average between updates.
  ``idle-100``: the same, with 100 other queues without updates. ``idle-after``: the same after 100,000 updates and a
  rest of 3 s.
- ``freshness``: the time from an update to its value at random times, while clients write at half of the version's own
  highest rate.
- ``share-1``, ``-10``: the server's processor time for an update: first while 8 clients write and no worker runs, then
  with the worker until the values include all updates.
- ``session-log``: the write-ahead log that a writer's session itself writes, at 100 rows a transaction; needs
  PostgreSQL 18.
"""
