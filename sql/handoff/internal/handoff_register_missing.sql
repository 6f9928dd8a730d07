-- pgcombine_internal.handoff_register_missing(names, dsns)
-- Registers those of the given servers that aren't registered yet; this server is left out. So are servers that were
-- removed here, unless keys of a queue are placed on them. Does nothing if the caller
-- may not insert into handoff_replica; the owner must then register them. The order by name prevents deadlocks between
-- two callers.
-- Tables written: handoff_replica, destination_state.
-- Errors: those of handoff_register.
create or replace function pgcombine_internal.handoff_register_missing(names text[], dsns text[])
returns void
language sql
as $$
    select pgcombine_internal.handoff_register(u.name, u.dsn)
    from unnest(names, dsns) u (name, dsn)
    where has_table_privilege('pgcombine.handoff_replica', 'insert')
      and not exists (select from pgcombine.handoff_replica r where r.name = u.name)
      and not exists (select from pgcombine.handoff_server s
                      where s.name = u.name or u.name = any (s.removed) and not exists (
                          select from pgcombine.handoff_queue q
                          where u.name = any (q.placed) and q.replicas < cardinality(q.placed)))
    order by u.name
$$;
