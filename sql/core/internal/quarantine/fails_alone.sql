-- pgcombine_internal.fails_alone(key, sqlstate) → boolean
-- Returns whether combining a key of the search fails without observers, too, by an error of its data. Rolls back what
-- it has tried. A key that the server lacks memory for is at fault if the server has memory otherwise.
--   key       its number in the search
--   sqlstate  the error of the key with observers
create or replace function pgcombine_internal.fails_alone(key integer, sqlstate text)
returns boolean
language plpgsql
as $$
begin
    if (fails_alone.sqlstate ~ '^(22|23514$|54|53200$|XX000$)') is not true then
        return false;
    end if;
    perform pgcombine_internal.try_keys(key, key, observed => false);
    raise transaction_rollback; -- the combiners accept the key, so the observers are at fault
exception
    when transaction_rollback then return false;
    when data_exception or check_violation or program_limit_exceeded then return true;
    when out_of_memory or internal_error then
        perform pg_catalog.length(pg_catalog.repeat('x', 16000000)); -- raises if the server has none for anybody
        return true;
end
$$;
