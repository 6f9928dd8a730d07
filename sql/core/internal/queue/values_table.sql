-- pgcombine_internal.values_table(queue, partition [, suffix]) → text
-- Returns the quoted name of a partition's table of values.
--   suffix  see create_partitions
create or replace function pgcombine_internal.values_table(queue text, partition integer, suffix text default '')
returns text
language sql immutable
as $$
    select format('pgcombine.%I', queue || '_values_b' || to_char(partition, 'FM0000') || suffix)
$$;
