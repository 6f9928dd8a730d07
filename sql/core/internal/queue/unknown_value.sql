-- pgcombine_internal.unknown_value(queue, column, key, error) → boolean
-- Warns that <queue>_current shows null for a value, since the key's updates can't be combined. Returns true.
-- It is volatile, so that a query evaluates it once a key.
create or replace function pgcombine_internal.unknown_value(queue text, "column" text, key record, error text)
returns boolean
language plpgsql
as $$
begin
    raise warning 'column "%" of key % in %_current is null: its updates can''t be combined with its value: %',
        "column", key, queue, error
        using hint = format('pgcombine.%s_values and pgcombine.%s_pending show both', queue, queue);
    return true;
end
$$;
