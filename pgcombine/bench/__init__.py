"""``pgcombine bench``: the speed of queues on this machine, compared with PostgreSQL without pgcombine.

A *figure* is a measurement that has a name. It measures the queue and, if there is one, a baseline in turn, in several
rounds. The ratio of the two is the median of the rounds' ratios. PostgreSQL's ``pgbench`` makes the load of concurrent
clients. Without pgbench, a figure that needs it raises :class:`~pgcombine.errors.ConfigError`. Many figures also check
the total of the values, and raise :class:`~pgcombine.errors.PgCombineError` if it is wrong.
"""
