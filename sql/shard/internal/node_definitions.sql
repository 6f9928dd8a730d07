-- pgcombine_internal.node_definitions(queue, node) → (shard, columns, rules, partitions, digest, locale,
--   fenced)
-- Returns what a node tells of the queues that could be shards of a front (see the view shard_definition).
--   queue  name of the front
--   node   name of the foreign server
-- The function makes the foreign table that it reads, and drops it. The node may have another version of pgcombine:
-- check_front compares digest, create_front doesn't.
-- Errors: those of postgres_fdw, if the node can't be reached or has no such view.
create or replace function pgcombine_internal.node_definitions(queue text, node text)
returns table (shard integer, columns jsonb, rules jsonb, partitions integer, digest text, locale text, fenced boolean)
language plpgsql
as $$
begin
    execute format('create foreign table pgcombine_internal.node_definition (queue text, columns jsonb, rules jsonb, '
        'partitions integer, digest text, locale text, fenced boolean) server %I options (schema_name ''pgcombine'', '
        'table_name ''shard_definition'')', node);
    return query execute 'select right(d.queue, 2)::integer, d.columns, d.rules, d.partitions, d.digest, d.locale,
        d.fenced from pgcombine_internal.node_definition d where d.queue ~ $1 order by d.queue'
        using '^' || queue || '_[0-9][0-9]$';
    drop foreign table pgcombine_internal.node_definition;
end
$$;
