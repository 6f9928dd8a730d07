-- pgcombine_internal.own_cluster() → boolean
-- Returns whether the stored transaction ids were given in this database. They were if each row of
-- pgcombine.cluster_identity names the id of the transaction that wrote it. A restore of a dump writes the rows under
-- another id. A template copy, a promoted standby, point-in-time recovery and pg_upgrade keep the rows, and the ids
-- keep their meaning.
create or replace function pgcombine_internal.own_cluster()
returns boolean
language sql stable
as $$
    select coalesce((select bool_and(l.xmin = l.id) from pgcombine.cluster_identity l), false)
$$;
