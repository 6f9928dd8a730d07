"""``pgcombine bench``: the speed of queues on this machine, compared with PostgreSQL without pgcombine.

Each figure measures the queue and its baseline in turn, in several rounds, in a throw-away database on the same server.
The result is the median of the rounds' ratios: ratios vary less between machines and runs than absolute values.
PostgreSQL's ``pgbench`` makes the load, since it takes little processor time compared with the server. Without
pgbench, :class:`~pgcombine.errors.ConfigError` is raised. Totals are compared with the updates that were enqueued. A
wrong total raises :class:`~pgcombine.errors.PgCombineError`.
"""
