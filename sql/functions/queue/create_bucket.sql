-- pgcombine.create_bucket(queue, bucket, buckets [, suffix])
-- Makes the pair of partitions with this number, of so many, in the tablespace whose turn it is.
-- Updates come and go: they are vacuumed early and never for their inserts. Values are updated in place: room
-- on each page keeps these updates heap-only.
--   suffix  of the names of the parents and their partitions: rebucket fills tables of its own
create or replace function pgcombine.create_bucket(queue text, bucket integer, buckets integer, suffix text default '')
returns void
language plpgsql
as $$
declare
    _tables constant text[] := pgcombine.partition_tables(create_bucket.queue, create_bucket.bucket, create_bucket.suffix);
    _spaces constant text[] := (pgcombine.require_queue(create_bucket.queue)).tablespaces;
    _default constant text := current_setting('default_tablespace');
begin
    if _spaces is not null then -- their indexes, too
        perform set_config('default_tablespace', _spaces[1 + create_bucket.bucket % cardinality(_spaces)], true);
    end if;
    execute format(
        'create table %s partition of pgcombine.%I for values with (modulus %s, remainder %s)
         with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
               autovacuum_vacuum_insert_threshold = -1)',
        _tables[1], create_bucket.queue || '_updates' || suffix, create_bucket.buckets, create_bucket.bucket);
    execute format(
        'create table %s partition of pgcombine.%I for values with (modulus %s, remainder %s)
         with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05)',
        _tables[2], create_bucket.queue || '_values' || suffix, create_bucket.buckets, create_bucket.bucket);
    perform set_config('default_tablespace', _default, true);
end
$$;
