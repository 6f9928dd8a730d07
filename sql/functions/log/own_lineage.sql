-- pgcombine.own_lineage() → boolean
-- Whether this is the database in which the stored ids of transactions were given: each row of lineage bears the id that
-- it names. A restore of a dump writes its rows under another id. A template copy, a promoted standby, recovery to a point
-- in time and pg_upgrade keep them, and the ids mean what they did.
create or replace function pgcombine.own_lineage()
returns boolean
language sql stable
as $$
    select coalesce((select bool_and(l.xmin = l.id) from pgcombine.lineage l), false)
$$;
