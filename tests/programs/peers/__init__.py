"""Compare this queue with the alternatives that a user might choose, with the same work on the same server.

``python -m tests.programs.peers`` measures, and prints a table of ratios to sorted upserts. These rules keep the
comparison fair:

- **Same data.** Transaction j of client c writes the same keys for every contender: a run of a fixed Zipf sample whose
  place follows from j and c, not from random numbers.
- **Exact totals.** pgbench's log lists the committed transactions. The program computes the total of each key from the
  log, and compares the contender's totals after every turn. It compares sums of a table with the table. Wrong totals
  are marked wherever figures are shown.
- **Same server, same durability.** All turns run on one server, with ``synchronous_commit``, ``fsync`` and
  ``full_page_writes`` on. No contender has an unlogged table or a special session setting, except that pg_ivm's
  sessions load its library, as its manual requires. chDB doesn't run on the server; it writes its batches with fsync.
- **Fresh and warm.** Each turn has a new database, a copy of one template. After a checkpoint, a load that isn't
  counted fills the contender's tables, and the tables are vacuumed and analyzed. So a measured window rarely writes
  full pages to the write-ahead log.
- **No checkpoint in a measured window.** A server that the program starts makes automatic checkpoints at least half
  an hour apart. A turn reports a checkpoint that came in a measured window all the same.
- **Same clients.** Each contender but chDB has the same number of connections, prepared statements with generic plans,
  and the same pgbench.
- **To the end.** A contender's time ends when its consumer has nothing left to do, so postponed work counts.
- **Separate processor times.** Processor times are measured for all processes of the server together, for the
  consumer, and for pgbench.
- **Interleaved.** In a round each contender has its turn, and the order is rotated from round to round. A ratio
  compares with sorted upserts in the same round.
- **At random times.** Probes of freshness come at random times, not in step with a consumer's period.
- **At its best.** A consumer works without a pause while there is work, and vacuums the tables in which it deletes, if
  that helps. Only the consumers of PgQ and of the sequence window pause, for 50 ms after each batch, so that a batch
  has many updates.
"""
