-- pgcombine.require(holds, sqlstate, message, hint)
-- Raises this error unless the condition is true; null isn't.
create or replace function pgcombine.require(holds boolean, sqlstate text, message text, hint text)
returns void
language plpgsql
as $$
begin
    if holds is not true then
        raise exception using errcode = require.sqlstate, message = require.message, hint = require.hint;
    end if;
end
$$;
