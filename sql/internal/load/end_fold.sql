-- pgcombine_internal.end_fold(queue) → bigint
-- Enqueues the rows of pg_temp.pgcombine_fold, folded by key with the queue's combiners; returns the number of updates.
-- Tables written: <queue>_updates.
-- Errors: PC001 unknown queue.
create or replace function pgcombine_internal.end_fold(queue text)
returns bigint
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(end_fold.queue);
    _keys constant text := pgcombine_internal.column_list(_queue.queue, 'key');
    _updates bigint;
begin
    execute format('insert into pgcombine.%I (%s) select %s, %s from %s group by %s', _queue.queue || '_updates', pgcombine_internal.column_list(_queue.queue),
        _keys, pgcombine_internal.column_list(_queue.queue, 'value', '{fold} as {name}'), pgcombine_internal.fold_source(_queue.queue, 'pg_temp.pgcombine_fold'), _keys);
    get diagnostics _updates = row_count;
    return _updates;
end
$$;
