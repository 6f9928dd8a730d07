-- pgcombine_internal.shard_name(queue, shard) → text
-- Returns the name of a shard's queue, such as wc_07.
create or replace function pgcombine_internal.shard_name(queue text, shard integer)
returns text
language sql immutable
as $$
    select queue || '_' || lpad(shard::text, 2, '0')
$$;
