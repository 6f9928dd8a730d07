-- pgcombine.right_names() → text[]
-- The rights that grant_<right> grants and revoke_right takes away.
create or replace function pgcombine.right_names()
returns text[]
language sql immutable
as $$
    select array['enqueue', 'read', 'load', 'work', 'export', 'handoff', 'replay', 'monitor', 'operate']
$$;
