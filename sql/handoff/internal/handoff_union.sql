-- pgcombine_internal.handoff_union(known, servers, replicas, absent) → text[]
-- Returns the servers that hold a queue, when a writer names some of them. A writer may have an old list.
-- If all servers hold all keys, both for the writer and here, these are the servers that any writer has named, without
-- absent ones. So a server that a writer doesn't name gets hints until it is removed, and a removed one gets none.
-- Otherwise they are the servers that the writer names, since the list places the keys.
--   known     the queue's row of handoff_queue
--   servers   the servers that the writer names
--   replicas  how many of them hold a key
--   absent    servers that can't get hints here: removed ones, and those that aren't registered
create or replace function pgcombine_internal.handoff_union(known pgcombine.handoff_queue, servers text[],
    replicas integer, absent text[])
returns text[]
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
    select case when handoff_union.replicas >= cardinality(handoff_union.servers)
                 and coalesce((known).replicas >= cardinality((known).servers), true)
                 and array_position(handoff_union.servers, null) is null
        then array(select s from unnest(handoff_union.servers || (known).servers) s
                   where s <> all (handoff_union.absent) group by s order by s collate "C")
        else handoff_union.servers end
$$;
