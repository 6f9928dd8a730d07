-- pgcombine.blameless(sqlstate) → boolean
-- Whether an error tells of the state of the server or of the session, so that no key is to blame: lost
-- connections, read-only, conflicts, missing resources, timeouts, shutdowns, defects, a copy that was not adopted.
create or replace function pgcombine.blameless(sqlstate text)
returns boolean
language sql immutable
as $$
    select coalesce(left(sqlstate, 2) in ('08', '25', '40', '53', '55', '57', '58', 'XX') or sqlstate = 'PC012', false)
$$;
