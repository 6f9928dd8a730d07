-- pgcombine_internal.right_names() → text[]
-- Returns the rights that the functions grant_<right> grant and revoke_right takes away.
create or replace function pgcombine_internal.right_names()
returns text[]
language sql immutable
as $$
    select array['enqueue', 'read', 'load', 'work', 'export', 'handoff', 'replay', 'monitor', 'operate']
$$;
