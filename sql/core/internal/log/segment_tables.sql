-- pgcombine_internal.segment_tables(queue, partition [, suffix]) → text[]
-- Returns the segments of a partition by number: first those of plain rows, then those of packed rows, if the queue
-- packs (see enqueue_function).
--   suffix  is added to each name
create or replace function pgcombine_internal.segment_tables(queue text, partition integer, suffix text default '')
returns text[]
language sql stable
as $$
    select array(
        select format('pgcombine.%I', q.queue || '_updates_b' || to_char(segment_tables.partition, 'FM0000')
                   || '_s' || s || segment_tables.suffix)
        from generate_series(0, q.segments * case when q.packs then 2 else 1 end - 1) s
        order by s)
    from pgcombine.queue q where q.queue = segment_tables.queue
$$;
