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
    _updates bigint;
begin
    execute format('insert into pgcombine.%I (%s) select %s, %s from %s group by %3$s', _queue.queue || '_updates',
        pgcombine_internal.column_list(_queue.queue), pgcombine_internal.column_list(_queue.queue, 'key'),
        pgcombine_internal.column_list(_queue.queue, 'value', '%8$s as %1$I'), pgcombine_internal.fold_source(_queue.queue, 'pg_temp.pgcombine_fold'));
    get diagnostics _updates = row_count;
    return _updates;
end
$$;
