"""Compare this queue with the alternatives that a user might choose, with the same work on the same server.

``python -m tests.programs.peers`` measures, and prints a table of ratios to sorted upserts. These rules keep the
comparison fair:

- **Same data.** Transaction j of client c writes the same keys for each contender. In most figures (kinds of
  measurements) these keys are consecutive words of a fixed Zipf sample, from a place that follows from j and c.
- **Exact totals.** pgbench's log lists the committed transactions. The program computes the total of each key from the
  log, and compares the contender's totals with it at the end of a turn. If a contender keeps the sums of a table, the
  program computes the totals from that table. The report and the plot mark contenders with wrong totals.
- **Same server, same durability.** All turns run on one server, with ``synchronous_commit``, ``fsync`` and
  ``full_page_writes`` on. No contender has an unlogged table or a special session setting, except that pg_ivm's
  sessions load its library, as its manual requires. chDB doesn't run on the server; it writes its batches with fsync.
- **Fresh and warm.** Each turn has a new database, a copy of one template. After a checkpoint, a load that isn't
  counted fills the contender's tables, and the tables are vacuumed and analyzed. So a measured window rarely writes
  full pages to the write-ahead log.
- **Few checkpoints.** A server that the program starts makes an automatic checkpoint after half an hour, or earlier if
  the write-ahead log would exceed about 16 GB. In figures with bytes of log, the report tells of a checkpoint in a
  measured window.
- **Same clients.** Each contender but chDB has the same number of connections, prepared statements with generic plans,
  and the same pgbench.
- **To the end.** For each rate but that beside an open writer, a contender's time ends when its consumer has nothing
  left to do. So postponed work counts.
- **Separate processor times.** Processor times are measured for all processes of the server together, for the
  consumer, and for pgbench.
- **Interleaved.** In a round each contender has its turn, and the order is rotated from round to round. A ratio
  compares a contender with sorted upserts in the same round.
- **At random times.** Probes of freshness come at random times, not in step with a consumer's period.
- **At its best.** The consumers of PgQ and of the sequence window pause for 50 ms after each batch, so that a batch has
  many updates. The other consumers work without a pause while there is work.
"""
