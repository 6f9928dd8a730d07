-- pgcombine_internal.create_partition(queue, partition, partitions [, suffix])
-- Makes one pair of partitions, in the tablespace whose turn it is. The partition of updates is a ring of segments,
-- which are only inserted into and truncated. That of values is one table with room for heap-only updates.
--   partition, partitions  the number of the pair, and of all pairs
--   suffix  ends the names of the parents and their partitions: rebucket fills tables of its own
-- Errors: PC001 unknown queue.
create or replace function pgcombine_internal.create_partition(queue text, partition integer, partitions integer,
    suffix text default '')
returns void
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(create_partition.queue);
    _tables constant text[] := pgcombine_internal.partition_tables(create_partition.queue, create_partition.partition, create_partition.suffix);
    _default constant text := current_setting('default_tablespace');
begin
    -- The cast checks each routed row. If the column had the domain as its type, PostgreSQL wouldn't check ids that come from
    -- another column of the domain (select * from another queue's updates, or from a copy).
    execute format(
        'create table %s partition of pgcombine.%I for values with (modulus %s, remainder %s)
         partition by list (((pgcombine_tx::pgcombine.own_tx >> %s) & %s))',
        _tables[1], create_partition.queue || '_updates' || suffix, create_partition.partitions,
        create_partition.partition, _queue.segment_bits, _queue.segments - 1);
    if _queue.tablespaces is not null then -- the partitioned table above needs none, since it stores no rows
        perform set_config('default_tablespace', _queue.tablespaces[1 + create_partition.partition % cardinality(_queue.tablespaces)], true);
    end if;
    for _number in 0 .. _queue.segments - 1 loop
        execute format('create table pgcombine.%I partition of %s for values in (%s) with (%s)',
            create_partition.queue || '_updates_b' || to_char(create_partition.partition, 'FM0000') || '_s' || _number || suffix,
            _tables[1], _number,
            -- rows of a segment die only if retire may not truncate it
            'autovacuum_vacuum_insert_threshold = -1, autovacuum_analyze_threshold = 2147483647');
    end loop;
    execute format(
        'create table %s partition of pgcombine.%I for values with (modulus %s, remainder %s)
         with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05)',
        _tables[2], create_partition.queue || '_values' || suffix, create_partition.partitions, create_partition.partition);
    perform set_config('default_tablespace', _default, true);
end
$$;
