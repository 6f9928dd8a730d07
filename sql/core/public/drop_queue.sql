-- pgcombine.drop_queue(queue [, force])
-- Drops a queue with its updates and values, all in one transaction.
--   force  whether to drop the queue even if updates are pending or quarantined, or a component still uses it. With or
--          without force, components' objects for the queue are dropped, too
-- If the drop takes too many locks for one transaction, call pgcombine.drop_large_queue.
-- Tables written: those of close_queue.
-- Errors: PC001 unknown queue; PC003 the isolation level isn't read committed, without force; PC005 updates are
-- pending or quarantined, or a component keeps the queue, without force; PC006 the tables weren't free within
-- lock_timeout; PC011 too many locks; 2BP01 another object depends on its tables or views; 42501 the caller doesn't own
-- the queue.
create or replace function pgcombine.drop_queue(queue text, force boolean default false)
returns void
language plpgsql
as $$
declare
    _locks constant bigint := pgcombine_internal.locks_to_drop(drop_queue.queue);
    _otherwise constant text := format('; or drop it in portions: call pgcombine.drop_large_queue(%L)',
        drop_queue.queue);
    _hint text;
begin
    perform pgcombine_internal.refuse_locks(drop_queue.queue, 'drop', _locks, _otherwise);
    perform pgcombine_internal.close_queue(drop_queue.queue, drop_queue.force, wholly => true);
    execute format('drop table pgcombine.%I, pgcombine.%I',
        drop_queue.queue || '_updates', drop_queue.queue || '_values');
exception when out_of_memory then -- other sessions may hold too many locks
    get stacked diagnostics _hint = pg_exception_hint;
    perform pgcombine_internal.refuse_locks(drop_queue.queue, 'drop', _locks, _otherwise, _hint);
    raise;
end
$$;
