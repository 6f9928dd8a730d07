-- pgcombine.inserted(queue, bucket) → bigint
-- How many rows were ever inserted into the tables that hold the bucket's updates, by the statistics, which follow within
-- a second or so. For refuse_backlog.
create or replace function pgcombine.inserted(queue text, bucket integer)
returns bigint
language sql stable
as $$
    select sum(pg_stat_get_tuples_inserted(s::regclass))::bigint
    from pgcombine.queue q, unnest(pgcombine.segment_tables(q.queue, inserted.bucket % q.partitions)) s
    where q.queue = inserted.queue
$$;
