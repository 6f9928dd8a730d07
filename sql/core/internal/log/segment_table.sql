-- pgcombine_internal.segment_table(queue, partition, segment [, suffix]) → text
-- Returns the quoted name of a table of the log.
--   suffix  see create_partitions
create or replace function pgcombine_internal.segment_table(queue text, partition integer, segment integer,
    suffix text default '')
returns text
language sql stable
as $$
    select format('pgcombine.%I', queue || '_updates_b' || to_char(partition, 'FM0000') || '_s' || segment || suffix)
$$;
