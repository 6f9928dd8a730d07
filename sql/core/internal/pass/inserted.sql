-- pgcombine_internal.inserted(queue, bucket) → bigint
-- Returns the number of rows inserted into the tables of a bucket's updates since counted_since, for refuse_backlog. The
-- statistics that it reads are up to a second or so old.
create or replace function pgcombine_internal.inserted(queue text, bucket integer)
returns bigint
language sql stable
as $$
    select sum(pg_stat_get_tuples_inserted(i.inhrelid))::bigint
    from pgcombine.queue q
    join pg_inherits i on i.inhparent = format('pgcombine.%I', q.queue || '_updates_b' || to_char(inserted.bucket % q.partitions, 'FM0000'))::regclass
    where q.queue = inserted.queue
$$;
