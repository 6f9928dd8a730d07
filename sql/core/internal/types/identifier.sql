-- pgcombine_internal.identifier(written) → text
-- Returns the name that an SQL identifier stands for: unchanged if it is quoted, otherwise in lower case.
create or replace function pgcombine_internal.identifier(written text)
returns text
language sql immutable
as $$
    select case when written like '"%"' then replace(substr(written, 2, length(written) - 2), '""', '"')
        else lower(written) end
$$;
