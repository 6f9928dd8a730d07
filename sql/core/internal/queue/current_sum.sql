-- pgcombine_internal.current_sum(queue, column, key, parts [, error]) → sum
-- Returns the sum of a key's value and its pending updates for <queue>_current. Returns null with a warning if a pass
-- over them would raise an error of data, such as an overflow or a failed check of the column's domain.
--   parts  the value and the updates
--   error  the message of the error, if the caller knows that there is one; parts isn't read then
create or replace function pgcombine_internal.current_sum(queue text, "column" text, key record, parts anyarray,
    error text default null)
returns anyelement
language plpgsql
as $$
declare
    _sum alias for $0;
    _error text := error;
begin
    if _error is null then
        begin
            select pg_catalog.sum(part) into _sum from pg_catalog.unnest(parts) part;
            return _sum;
        exception when data_exception or check_violation then
            _error := sqlerrm;
        end;
    end if;
    raise warning 'column "%" of key % in %_current is null: its updates can''t be combined with its value: %',
        "column", key, queue, _error
        using hint = format('pgcombine.%s_values and pgcombine.%s_pending show both', queue, queue);
    return null;
end
$$;
