-- pgcombine_internal.end_initialize(queue) → bigint
-- Ends a load of values: deletes the values that a pass would delete (delete_when holds, or the key has expired), and
-- returns their number. The function analyzes the table, since PostgreSQL plans passes with the table's statistics.
-- Tables written: <queue>_values.
-- Errors: PC001 unknown queue.
create or replace function pgcombine_internal.end_initialize(queue text)
returns bigint
language plpgsql
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(queue);
    _removed bigint := 0;
begin
    if num_nonnulls(_queue.delete_when, _queue.expire_when) > 0 then
        execute format('delete from pgcombine.%I where %s', _queue.queue || '_values',
            concat_ws(' or ', '(' || _queue.delete_when || ')', '(' || _queue.expire_when || ')'));
        get diagnostics _removed = row_count;
    end if;
    perform set_config('pgcombine.initialize_' || _queue.queue, 'off', true);
    execute format('analyze pgcombine.%I', _queue.queue || '_values');
    return _removed;
end
$$;
