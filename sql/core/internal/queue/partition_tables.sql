-- pgcombine_internal.partition_tables(queue, partition [, suffix]) → {updates, values}
-- Returns quoted names of a partition: that with which the names of its tables of updates begin (see segment_tables),
-- and that of its table of values.
--   suffix  see create_partitions
create or replace function pgcombine_internal.partition_tables(queue text, partition integer, suffix text default '')
returns text[]
language sql immutable
as $$
    select array[
        format('pgcombine.%I', queue || '_updates_b' || to_char(partition, 'FM0000') || suffix),
        format('pgcombine.%I', queue || '_values_b' || to_char(partition, 'FM0000') || suffix)]
$$;
