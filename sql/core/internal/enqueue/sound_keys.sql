-- pgcombine_internal.sound_keys(keys, limit_bytes) → boolean
-- Returns whether an array of keys is of one dimension, without nulls, and without keys longer than limit_bytes.
-- It is PL/pgSQL, since each insert prepares the check constraint anew, and would try to inline a function in SQL.
--   limit_bytes  null: keys of any length
create or replace function pgcombine_internal.sound_keys(keys anyarray, limit_bytes integer)
returns boolean
language plpgsql immutable parallel safe
as $$
begin
    if num_nulls(variadic keys) > 0 or array_ndims(keys) is distinct from 1 then
        return false;
    elsif limit_bytes is null or pg_column_size(keys) <= limit_bytes then -- PL/pgSQL has expanded the array: it isn't compressed
        return true;
    end if;
    return (select max(pg_column_size(e)) from unnest(keys) e) <= limit_bytes;
end
$$;
