"""``pgcombine bench``: end-to-end rate, freshness and combining on this machine, beside PostgreSQL without pgcombine.

A figure measures the queue and its baseline in turn, in several rounds. The ratio of the two is the median of the
rounds' ratios. PostgreSQL's ``pgbench`` makes the load. A wrong total of the values raises PgCombineError.
"""
