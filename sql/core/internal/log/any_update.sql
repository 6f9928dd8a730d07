-- pgcombine_internal.any_update(tables, condition) → boolean
-- Returns whether any of the given segments has an update that meets a condition.
-- Pending updates are usually in a segment's last pages, so the function reads the last pages of large segments first.
--   condition  on pgcombine_tx and the queue's columns
create or replace function pgcombine_internal.any_update(tables text[], condition text)
returns boolean
language plpgsql volatile
as $$
declare
    _table text;
    _last bigint; -- the first of the pages that are read first
    _found boolean := false;
begin
    foreach _table in array tables loop
        _last := pg_relation_size(_table::regclass) / current_setting('block_size')::bigint - 16;
        if _last > 0 then
            execute format('select exists (select from %s where ctid >= ''(%s,0)'' and %s)', _table, _last,
                any_update.condition) into _found;
            exit when _found;
        end if;
    end loop;
    foreach _table in array tables loop
        exit when _found;
        execute format('select exists (select from %s where %s)', _table, any_update.condition) into _found;
    end loop;
    return _found;
end
$$;
