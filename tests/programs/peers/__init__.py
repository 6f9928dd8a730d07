"""Side by side: this queue and what a user would pick instead, on the same work and the same server.

``python -m tests.programs.peers`` measures, and prints a table of ratios to sorted upserts. The guards against an
unfair set-up:

- **Same data.** Transaction j of client c writes the same keys for every contender: a run of the same Zipf sample, at
  a place that j and c give. No random numbers are drawn.
- **Exact totals.** pgbench's log says which transactions were committed. From it the totals are computed key by key,
  without the server, and compared with the contender's after every turn. A contender with wrong totals is marked so
  wherever its figures are shown.
- **Same server, same durability.** All turns run on one server, with ``synchronous_commit``, ``fsync`` and
  ``full_page_writes`` on. No contender has an unlogged table or a session setting of its own; pg_ivm's sessions load
  its library, as its manual says. chDB isn't on the server. It writes its batches with fsync.
- **Fresh and warm.** Each turn has a new database, a copy of one template. After a checkpoint, a load that isn't
  counted fills its tables, and they are vacuumed and analyzed. So the pages that a window writes to are in the log
  already.
- **No checkpoint in a measured window.** The server makes none by itself for half an hour. If there was one, the turn
  says so.
- **Same clients.** As many connections for each, prepared statements with generic plans, the same pgbench.
- **To the end.** The time of a contender with a consumer ends when its consumer has nothing left to do, so no one is
  paid for work that is put off.
- **Processor time told apart.** That of the server with all its processes, that of the consumer's own process, and that
  of pgbench.
- **Interleaved.** In a round each contender has its turn, and the order is rotated from round to round. A ratio is to
  sorted upserts in the same round.
- **At random times.** Freshness isn't measured in step with a consumer's period.
- **At its best.** A consumer works without a pause while there is work, and vacuums what it deletes from if that helps.
  PgQ's pause of 50 ms is the time from tick to tick.
"""
