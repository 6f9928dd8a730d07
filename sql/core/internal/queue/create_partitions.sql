-- pgcombine_internal.create_partitions(queue, partitions [, suffix])
-- Makes the partitions of a queue's two tables.
-- The log is partitioned by the transaction's id into a ring of segments, and each segment by the hash of the key. A
-- single partition has no second level, which would cost a writer time. The resulting tables are called segments of a
-- partition, or of the partition's buckets. Rows are inserted into these tables, and the tables are truncated. Rows are
-- deleted only where a truncation isn't possible (see delete_consumed and end_pass).
-- The values are partitioned by the same hash. Their pages have room for heap-only updates.
--   partitions  the number of partitions by hash. The partitions go to the queue's tablespaces in turn
--   suffix      ends the names of the parents and of their partitions, for the new tables that rebucket fills
-- Errors: PC001 unknown queue.
create or replace function pgcombine_internal.create_partitions(queue text, partitions integer, suffix text default '')
returns void
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(queue);
    _keys constant text := pgcombine_internal.column_list(_queue.queue, 'key');
    _default constant text := current_setting('default_tablespace');
    _table text;
begin
    for _place in 0 .. case when partitions > 1 then _queue.segments - 1 else -1 end loop
        execute format('create table pgcombine.%I partition of pgcombine.%I for values in (%s) partition by hash (%s)',
            _queue.queue || '_updates_s' || _place || suffix, _queue.queue || '_updates' || suffix, _place, _keys);
        execute format('comment on table pgcombine.%I is %L', _queue.queue || '_updates_s' || _place || suffix,
            format('Segment %s of the log of queue %s.', _place, _queue.queue));
    end loop;
    for _number in 0 .. partitions - 1 loop
        if _queue.tablespaces is not null then -- the parents store no rows, so they need no tablespace
            perform set_config('default_tablespace',
                _queue.tablespaces[1 + _number % cardinality(_queue.tablespaces)], true);
        end if;
        for _place in 0 .. _queue.segments - 1 loop
            _table := pgcombine_internal.segment_table(_queue.queue, _number, _place, suffix);
            execute format('create table %s partition of pgcombine.%I for values %s with (%s)', _table,
                _queue.queue || '_updates' || case when partitions > 1 then '_s' || _place else '' end || suffix,
                case when partitions > 1 then format('with (modulus %s, remainder %s)', partitions, _number)
                     else format('in (%s)', _place) end,
                -- autovacuum has little to do here, since the tables are truncated
                'autovacuum_vacuum_insert_threshold = -1, autovacuum_analyze_threshold = 2147483647');
            execute format('comment on table %s is %L', _table,
                format('Segment %s of partition %s of the log of queue %s.', _place, _number, _queue.queue));
        end loop;
        execute format(
            'create table %s partition of pgcombine.%I for values with (modulus %s, remainder %s)
             with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05)',
            pgcombine_internal.values_table(_queue.queue, _number, suffix),
            _queue.queue || '_values' || suffix, partitions, _number);
        execute format('comment on table %s is %L', pgcombine_internal.values_table(_queue.queue, _number, suffix),
            format('Partition %s of the values of queue %s.', _number, _queue.queue));
        perform set_config('default_tablespace', _default, true);
    end loop;
end
$$;
