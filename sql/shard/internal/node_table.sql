-- pgcombine_internal.node_table(node) → text
-- Returns the name of the foreign table over a node's queue_stat, in the schema pgcombine_internal. The name has a
-- hash of the server's name, which may be too long itself.
create or replace function pgcombine_internal.node_table(node name)
returns text
language sql immutable
as $$
    select 'node_' || md5(node)
$$;
