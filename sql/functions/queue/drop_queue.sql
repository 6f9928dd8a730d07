-- pgcombine.drop_queue(queue [, force])
-- Drops a queue with its updates and values, all or nothing.
--   force  also when updates are pending, or held because their key is quarantined, or a table is attached, or the
--          queue is exported: its exports are dropped with what waits to be delivered
-- Where that takes too many locks for one transaction, call pgcombine.drop_in_portions.
-- Tables written: pgcombine.queue, queue_column, bucket, combiner; as drop_export does.
-- Errors: PC001 unknown queue; PC003 not under read committed, and not forced; PC005 updates are pending or held, a
-- table is attached, or the queue is exported; PC011 too many locks.
create or replace function pgcombine.drop_queue(queue text, force boolean default false)
returns void
language plpgsql
as $$
declare
    _locks constant bigint := pgcombine.locks_to_drop(drop_queue.queue);
    _otherwise constant text := format('; or drop it in portions: call pgcombine.drop_in_portions(%L)', drop_queue.queue);
    _hint text;
begin
    if _locks > pgcombine.lock_capacity() then
        perform pgcombine.refuse_locks(drop_queue.queue, 'drop', _locks, _otherwise);
    end if;
    begin
        perform pgcombine.close_queue(drop_queue.queue, drop_queue.force);
        perform pgcombine.drop_generated(drop_queue.queue);
        execute format('drop table pgcombine.%I, pgcombine.%I', drop_queue.queue || '_updates', drop_queue.queue || '_values');
    exception when out_of_memory then
        get stacked diagnostics _hint = pg_exception_hint;
        if _hint like '%max_locks_per_transaction%' then -- others hold too many
            perform pgcombine.refuse_locks(drop_queue.queue, 'drop', _locks, _otherwise);
        end if;
        raise;
    end;
    delete from pgcombine.queue q where q.queue = drop_queue.queue;
    perform pgcombine.drop_unused_combiners();
end
$$;
