-- pgcombine_internal.current_sql(queue) → text
-- Returns the query of the view <queue>_current: the values combined with the pending updates.
-- Updates of quarantined keys are left out, since the next pass moves them to the quarantine. A Python combiner can't
-- run here, so for its pending updates the query raises instead of returning a wrong value.
-- Conditions on the key reach both tables through the union. One partition of the values and of plain updates is read.
-- Packed updates are all read, since their keys are inside of arrays.
-- Errors: PC001 unknown queue.
create or replace function pgcombine_internal.current_sql(queue text)
returns text
language plpgsql stable
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(current_sql.queue);
    _keys constant text := pgcombine_internal.column_list(_queue.queue, 'key');
    _columns constant text := pgcombine_internal.column_list(_queue.queue);
begin
    return format('select %s from (select %s, %s from %s group by %2$s) as folded where not coalesce(%5$s, false)',
        _columns, _keys, pgcombine_internal.column_list(_queue.queue, 'value', '%8$s as %1$I'),
        pgcombine_internal.fold_source(_queue.queue, format('(select %1$s from pgcombine.%2$I union all select %1$s from pgcombine.%3$I where %4$s%5$s) as parts',
            _columns, _queue.queue || '_values', _queue.queue || '_pending',
            (select format('pgcombine_internal.refuse_pending(%L) and ', c.queue) from pgcombine.queue_column c
             where c.queue = _queue.queue and c.combiner = 'python' limit 1),
            pgcombine_internal.not_held(_queue.queue))),
        coalesce(_queue.delete_when, 'false'));
end
$$;
