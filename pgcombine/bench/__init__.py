"""``pgcombine bench``: the speed of queues on this machine, compared with PostgreSQL without pgcombine.

A figure measures the queue and, if there is one, a baseline in turn, in several rounds. The ratio of the two is the
median of the rounds' ratios: ratios vary less between machines and runs than absolute values. PostgreSQL's ``pgbench``
makes the load of concurrent clients, since it takes little processor time compared with the server. Without pgbench,
:class:`~pgcombine.errors.ConfigError` is raised. The total of the values is compared with the number of enqueued
updates. A wrong total raises :class:`~pgcombine.errors.PgCombineError`.
"""
