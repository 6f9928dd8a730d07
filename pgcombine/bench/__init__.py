"""``pgcombine bench``: the speed of the queue on this machine, in ratios to the speed of PostgreSQL without it.

Each figure measures the queue and its baseline in turn, in several rounds, in a throw-away database on the same server.
The result is the median of the rounds' ratios: ratios vary less between machines and runs than absolute values.
PostgreSQL's ``pgbench`` makes the transactions, so making the load costs little compared with the server. Without
pgbench, :class:`~pgcombine.errors.ConfigError` is raised. Totals are compared with the updates that were enqueued. A
wrong total raises :class:`~pgcombine.errors.PgCombineError`.
"""
