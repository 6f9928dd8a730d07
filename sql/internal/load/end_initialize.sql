-- pgcombine_internal.end_initialize(queue) → bigint
-- Ends a load of values: deletes loaded rows for which delete_when holds, since these stand for no value; returns their
-- number. It analyzes the table, since passes are planned with its statistics.
-- Tables written: <queue>_values.
-- Errors: PC001 unknown queue.
create or replace function pgcombine_internal.end_initialize(queue text)
returns bigint
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(end_initialize.queue);
    _removed bigint := 0;
begin
    if _queue.delete_when is not null then
        execute format('delete from pgcombine.%I where %s', _queue.queue || '_values', _queue.delete_when);
        get diagnostics _removed = row_count;
    end if;
    execute format('analyze pgcombine.%I', _queue.queue || '_values');
    return _removed;
end
$$;
