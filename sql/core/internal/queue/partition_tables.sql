-- pgcombine_internal.partition_tables(queue, partition [, suffix]) → {updates, values}
-- Returns the quoted names of a pair of partitions.
--   suffix  see create_partition
create or replace function pgcombine_internal.partition_tables(queue text, partition integer, suffix text default '')
returns text[]
language sql immutable
as $$
    select array[
        format('pgcombine.%I', queue || '_updates_b' || to_char(partition, 'FM0000') || suffix),
        format('pgcombine.%I', queue || '_values_b' || to_char(partition, 'FM0000') || suffix)]
$$;
