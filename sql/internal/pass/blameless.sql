-- pgcombine_internal.blameless(sqlstate) → boolean
-- Returns whether an error comes from the state of the server or the session, so that no key is at fault: lost
-- connections, read-only transactions, conflicts, missing resources, timeouts, shutdowns, internal errors, a copy that
-- isn't adopted.
create or replace function pgcombine_internal.blameless(sqlstate text)
returns boolean
language sql immutable
as $$
    select coalesce(left(sqlstate, 2) in ('08', '25', '40', '53', '55', '57', '58', 'XX') or sqlstate = 'PC012', false)
$$;
