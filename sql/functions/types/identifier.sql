-- pgcombine.identifier(written) → text
-- The name that a written SQL identifier stands for: quoted as it is, else in lower case.
create or replace function pgcombine.identifier(written text)
returns text
language sql immutable
as $$
    select case when written like '"%"' then replace(substr(written, 2, length(written) - 2), '""', '"') else lower(written) end
$$;
