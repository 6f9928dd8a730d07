-- pgcombine_internal.current_sum(queue, column, key, parts) → sum
-- Returns the sum of a key's value and its pending updates for <queue>_current; null with a warning if a pass over them
-- would raise an error of data, such as an overflow or a check of the column's domain.
create or replace function pgcombine_internal.current_sum(queue text, "column" text, key record, parts anyarray)
returns anyelement
language plpgsql
as $$
declare
    _sum alias for $0;
begin
    select pg_catalog.sum(part) into _sum from pg_catalog.unnest(parts) part;
    return _sum;
exception when data_exception or check_violation then
    perform pgcombine_internal.unknown_value(queue, "column", key, sqlerrm);
    return null;
end
$$;
