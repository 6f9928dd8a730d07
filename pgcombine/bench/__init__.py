"""``pgcombine bench``: what the queue reaches on this machine, as ratios to what PostgreSQL reaches without it.

Every figure measures the queue and its baseline in turn, several rounds, in a throw-away database on the same
server, and gives the median of the rounds' ratios: machines differ and are noisy, ratios less so. Transactions
come from PostgreSQL's ``pgbench`` (:class:`~pgcombine.errors.ConfigError` if there is none), so that the load
costs little beside the server. Totals are checked against what was enqueued: a figure with a wrong total raises
:class:`~pgcombine.errors.PgCombineError`.
"""
