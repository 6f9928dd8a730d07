-- pgcombine_internal.segment_tables(queue, partition) → text[]
-- Returns the tables of the updates of a partition, those of the segments in order.
create or replace function pgcombine_internal.segment_tables(queue text, partition integer)
returns text[]
language sql stable
as $$
    select array(
        select format('pgcombine.%I', q.queue || '_updates_b' || to_char(segment_tables.partition, 'FM0000')
            || '_s' || s)
        from generate_series(0, q.segments - 1) s
        order by s)
    from pgcombine.queue q where q.queue = segment_tables.queue
$$;
