-- call pgcombine.drop_in_portions(queue [, force])
-- Drops a queue as drop_queue does, but in several transactions, so that each takes few locks, however many buckets
-- there are. After the first one the queue is gone for everybody, and its tables are named <queue>_updates_dropped
-- and <queue>_values_dropped; they are then dropped by and by. Should that be interrupted, call it again.
--   force  also when updates are pending, or held because their key is quarantined, or a table is attached, or the
--          queue is exported: its exports are dropped with what waits to be delivered
-- A procedure, and not in a transaction, since it commits.
-- Tables written: pgcombine.queue, queue_column, bucket, combiner.
-- Errors: PC001 unknown queue; PC003 (or 2D000) called in a transaction; PC005 updates are pending or held, a table
-- is attached, or the queue is exported; 2BP01 something else depends on its tables.
create or replace procedure pgcombine.drop_in_portions(queue text, force boolean default false)
language plpgsql
as $$
declare
    _updates constant text := format('pgcombine.%I', drop_in_portions.queue || '_updates_dropped');
    _values constant text := format('pgcombine.%I', drop_in_portions.queue || '_values_dropped');
    _portion text;
begin
    begin -- see wait
        commit;
    exception when invalid_transaction_termination then
        if sqlerrm = 'invalid transaction termination' then
            raise exception 'queue "%" can''t be dropped in portions in a transaction', drop_in_portions.queue
                using errcode = 'PC003', hint = 'commit, then call it alone; or pgcombine.drop_queue';
        end if;
    end;
    commit;
    set local transaction isolation level read committed; -- see close_queue
    if coalesce(to_regclass(_updates), to_regclass(_values)) is null then -- else it was interrupted
        perform pgcombine.retire_queue(drop_in_portions.queue, drop_in_portions.force);
        commit;
    end if;
    loop
        select string_agg(p.partition, ', ') into _portion
        from (
            select i.inhrelid::regclass::text as partition
            from pg_inherits i
            where i.inhparent in (to_regclass(_updates), to_regclass(_values))
            order by i.inhrelid
            limit 8 -- with the segments of each
        ) p;
        exit when _portion is null;
        execute format('drop table if exists %s', _portion);
        commit;
    end loop;
    execute format('drop table if exists %s, %s', _updates, _values);
end
$$;
