-- pgcombine.partition_tables(queue, partition) → {updates, values}
-- The quoted names of a pair of partitions.
create or replace function pgcombine.partition_tables(queue text, partition integer)
returns text[]
language sql immutable
as $$
    select array[
        format('pgcombine.%I', queue || '_updates_b' || to_char(partition, 'FM0000')),
        format('pgcombine.%I', queue || '_values_b' || to_char(partition, 'FM0000'))]
$$;
