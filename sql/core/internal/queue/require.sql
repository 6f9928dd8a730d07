-- pgcombine_internal.require(holds, sqlstate, message, hint)
-- Raises an error with this SQLSTATE unless the condition is true. Null counts as false.
create or replace function pgcombine_internal.require(holds boolean, sqlstate text, message text, hint text)
returns void
language plpgsql
as $$
begin
    if holds is not true then
        raise exception using errcode = require.sqlstate, message = require.message, hint = require.hint;
    end if;
end
$$;
