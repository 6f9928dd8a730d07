-- call pgcombine.drop_large_queue(queue [, force])
-- Drops a queue as drop_queue does, but in several transactions. Each transaction drops at most 32 partitions, so it
-- takes fewer locks than drop_queue.
-- The first transaction removes the queue, and renames its tables to <queue>_updates_dropped and
-- <queue>_values_dropped. Further transactions drop the partitions of these tables, and the last one the tables. If the
-- call is interrupted, call it again.
-- Call the procedure outside of a transaction, since it commits.
-- Tables written: those of close_queue.
-- Errors: PC001 unknown queue; PC003 (or 2D000) called in a transaction; PC005 updates are pending or quarantined, or a
-- component keeps the queue, without force; PC006 the tables weren't free within lock_timeout; 2BP01 another object
-- depends on its tables or views; 42501 the caller doesn't own the queue.
create or replace procedure pgcombine.drop_large_queue(queue text, force boolean default false)
language plpgsql
as $$
declare
    _updates constant text := format('pgcombine.%I', drop_large_queue.queue || '_updates_dropped');
    _values constant text := format('pgcombine.%I', drop_large_queue.queue || '_values_dropped');
    _table text;
    _dependent text;
    _portion text;
begin
    call pgcombine_internal.begin_alone('drop_large_queue');
    -- if one of these tables exists, an earlier call was interrupted
    if coalesce(to_regclass(_updates), to_regclass(_values)) is null then
        perform pgcombine_internal.close_queue(drop_large_queue.queue, drop_large_queue.force, wholly => false);
        foreach _table in array array[drop_large_queue.queue || '_updates', drop_large_queue.queue || '_values'] loop
            -- finds views, functions and foreign keys that depend on the table or its partitions: because of them a
            -- later drop table would fail
            select pg_describe_object(d.classid, d.objid, 0) into _dependent
            from pg_partition_tree(format('pgcombine.%I', _table)::regclass) p
            join pg_depend d on d.refclassid = 'pg_class'::regclass and d.refobjid = p.relid
            where d.classid in ('pg_rewrite'::regclass, 'pg_proc'::regclass)
               or d.classid = 'pg_constraint'::regclass
                  and exists (select from pg_constraint k where k.oid = d.objid and k.confrelid = p.relid)
            limit 1;
            perform pgcombine_internal.require(not found, '2BP01',
                format('queue "%s" can''t be dropped: %s depends on pgcombine.%s',
                drop_large_queue.queue, _dependent, _table), 'drop that first');
            execute format('alter table pgcombine.%I rename to %I', _table, _table || '_dropped');
        end loop;
        commit;
    end if;
    loop
        select string_agg(p.partition, ', ') into _portion
        from (
            select t.relid::text as partition
            from unnest(array[to_regclass(_updates), to_regclass(_values)]) r (parent)
            cross join lateral pg_partition_tree(r.parent) t
            where t.isleaf
            order by t.relid
            limit 32
        ) p;
        exit when _portion is null;
        execute format('drop table if exists %s', _portion);
        commit;
    end loop;
    execute format('drop table if exists %s, %s', _updates, _values);
end
$$;
