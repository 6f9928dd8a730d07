-- pgcombine_internal.create_partition(queue, partition, partitions, packs [, suffix])
-- Makes one pair of partitions, in the tablespace whose turn it is. The partition of updates is a ring of segments,
-- which are only inserted into and truncated. That of values is one table with room for heap-only updates.
--   partition, partitions  the number of the pair, and of all pairs
--   packs    whether to make segments for packed rows (see packed_columns); without them a packed row can't be inserted
--   suffix   ends the names of the parents and their partitions: rebucket fills tables of its own
-- Errors: PC001 unknown queue.
create or replace function pgcombine_internal.create_partition(queue text, partition integer, partitions integer, packs boolean, suffix text default '')
returns void
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(create_partition.queue);
    _tables constant text[] := pgcombine_internal.partition_tables(create_partition.queue, create_partition.partition, create_partition.suffix);
    _arrays constant boolean := exists (
        select from pg_attribute a
        where a.attrelid = format('pgcombine.%I', create_partition.queue || '_updates' || suffix)::regclass and a.attname = 'pgcombine_0');
    _default constant text := current_setting('default_tablespace');
    _segment text;
begin
    -- The cast checks each routed row. If the column had the domain as its type, PostgreSQL wouldn't check ids that come from
    -- another column of the domain (select * from another queue's updates, or from a copy).
    execute format(
        'create table %s partition of pgcombine.%I for values with (modulus %s, remainder %s)
         partition by list ((%s(pgcombine_tx::pgcombine.own_tx >> %s) & %s%s))',
        _tables[1], create_partition.queue || '_updates' || suffix, create_partition.partitions, create_partition.partition,
        case when _arrays then '(' end, _queue.segment_bits, _queue.segments - 1,
        case when _arrays then format(') + case when num_nonnulls(%s) = 0 then 0 else %s end',
            pgcombine_internal.column_list(_queue.queue, form => 'pgcombine_{position}'), _queue.segments) end);
    if _queue.tablespaces is not null then -- the partitioned table above needs none, since it stores no rows
        perform set_config('default_tablespace', _queue.tablespaces[1 + create_partition.partition % cardinality(_queue.tablespaces)], true);
    end if;
    for _number in 0 .. _queue.segments * case when packs then 2 else 1 end - 1 loop
        _segment := format('pgcombine.%I', create_partition.queue || '_updates_b' || to_char(create_partition.partition, 'FM0000') || '_s' || _number || suffix);
        execute format('create table %s partition of %s for values in (%s) with (%s)', _segment, _tables[1], _number,
            -- rows of a segment die only if retire may not truncate it
            'autovacuum_vacuum_insert_threshold = -1, autovacuum_analyze_threshold = 2147483647');
        if _number >= _queue.segments then
            execute format('alter table %s add constraint what_is_in_arrays_must_be_updates check (%s)', _segment, pgcombine_internal.sound_packed(_queue.queue));
        end if;
    end loop;
    execute format(
        'create table %s partition of pgcombine.%I for values with (modulus %s, remainder %s)
         with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05)',
        _tables[2], create_partition.queue || '_values' || suffix, create_partition.partitions, create_partition.partition);
    perform set_config('default_tablespace', _default, true);
end
$$;
