-- pgcombine_internal.lock_holders(class, object) → (holder, role)
-- Lists the sessions that hold the advisory lock (hashtext(class), object), each with a description and its role. Any
-- role can take any advisory lock, so a session that didn't get one checks who holds it. For a prepared transaction the
-- role is null.
create or replace function pgcombine_internal.lock_holders(class text, object integer, out holder text, out role name)
returns setof record
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
    select case when a.pid is null then 'a prepared transaction'
        else format('session %s of role "%s"', a.pid, a.usename) end, a.usename
    from pg_locks l left join pg_stat_activity a using (pid)
    where (l.locktype, l.classid, l.objid, l.objsubid, l.granted)
        = ('advisory', hashtext(lock_holders.class)::oid, lock_holders.object::oid, 2, true)
      and l.database = (select d.oid from pg_database d where d.datname = current_database())
    order by a.pid
$$;
