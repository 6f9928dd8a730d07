-- pgcombine.values_tables(queue) → setof text
-- The quoted names of the physical partitions of a queue's values, for who reads them in parallel.
-- Errors: PC001 unknown queue.
create or replace function pgcombine.values_tables(queue text)
returns setof text
language sql stable
as $$
    select (pgcombine.partition_tables(q.queue, p))[2]
    from pgcombine.require_queue(values_tables.queue) q, generate_series(0, q.partitions - 1) p
$$;
