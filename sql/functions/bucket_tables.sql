-- pgcombine.bucket_tables(queue, bucket) → {updates, values}
-- The quoted names of a bucket's pair of tables.
create or replace function pgcombine.bucket_tables(queue text, bucket integer)
returns text[]
language sql immutable
as $$
    select array[
        format('pgcombine.%I', queue || '_updates_b' || to_char(bucket, 'FM0000')),
        format('pgcombine.%I', queue || '_values_b' || to_char(bucket, 'FM0000'))]
$$;
