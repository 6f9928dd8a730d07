-- The figures of queues, and how many rows were ever inserted into the log of each: null on a standby, which has no
-- such statistics.
select s.*, i.inserted
from pgcombine.queue_stat s
join pgcombine.queue q using (queue)
cross join lateral (
    select sum(pg_stat_get_tuples_inserted(to_regclass(n.name)))::bigint as inserted
    from generate_series(0, q.partitions - 1) p
    cross join lateral unnest(pgcombine_internal.segment_tables(q.queue, p)) n (name)
    where not pg_is_in_recovery()
) i
order by s.queue
