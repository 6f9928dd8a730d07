-- pgcombine_internal.handoff_check_name(name)
-- Raises unless a text can be the name of a server.
-- Errors: PC045 an invalid name.
create or replace function pgcombine_internal.handoff_check_name(name text)
returns void
language plpgsql immutable
as $$
begin
    if name is null or name !~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$' then
        raise exception 'invalid name of a server: %', coalesce(quote_literal(name), 'null')
            using errcode = 'PC045', hint = 'give at most 63 letters, digits, _ . and -';
    end if;
end
$$;
