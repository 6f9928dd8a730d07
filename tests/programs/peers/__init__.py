"""Compare this queue with the alternatives that a user might choose, with the same work on the same server.

``python -m tests.programs.peers`` measures, and prints a table of ratios to sorted upserts. These rules keep the
comparison fair:

- **Same data.** Transaction j of client c writes the same keys for each contender. In most figures they are a run of a
  fixed Zipf sample, and the run's place follows from j and c.
- **Exact totals.** The program computes the total of each key from the committed transactions, and compares the
  contender's totals with them. In figures of a table's sums it compares with the table. The printed table and the plot
  mark contenders with wrong totals.
- **Same server, same durability.** The server that the program starts has ``synchronous_commit``, ``fsync`` and
  ``full_page_writes`` on. The contenders' tables are logged. pg_ivm's sessions load its library, as its manual
  requires. chDB doesn't run on the server; it writes its batches with fsync.
- **Fresh and warm.** Each turn has a new database, a copy of one template. After a checkpoint, a load that isn't
  counted fills the contender's tables, and the tables are vacuumed and analyzed. So a measured window rarely writes
  full pages to the write-ahead log.
- **Few checkpoints.** The server that the program starts has a ``checkpoint_timeout`` of 30 minutes and a
  ``max_wal_size`` of 16 GB. Figures that measure bytes of log report a checkpoint in the measured window.
- **Same clients.** Contenders but chDB have the same number of connections, prepared statements with generic plans,
  and the same pgbench.
- **To the end.** End-to-end figures count the time until the consumer has nothing left to do, so postponed work counts.
- **Separate processor times.** Processor times are measured for all processes of the server together, for the
  consumer, and for pgbench.
- **Interleaved.** In a round each contender has its turn, and the order is rotated from round to round. A ratio
  compares with sorted upserts in the same round.
- **At random times.** Probes of freshness come at random times, not in step with a consumer's period.
- **At its best.** A consumer works without a pause while there is work. The consumers of PgQ and of the sequence window
  are exceptions: they pause for 50 ms after each batch, so that a batch has many updates.
"""
