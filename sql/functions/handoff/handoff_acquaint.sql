-- pgcombine.handoff_acquaint(names, dsns)
-- Registers servers that aren't yet; what is registered stays as it is. Does nothing for who may not register any:
-- then the owner does it.
-- Tables written: handoff_replica.
-- Errors: those of handoff_register.
create or replace function pgcombine.handoff_acquaint(names text[], dsns text[])
returns void
language sql
as $$
    select pgcombine.handoff_register(u.name, u.dsn)
    from unnest(names, dsns) u (name, dsn)
    where has_table_privilege('pgcombine.handoff_replica', 'insert')
      and not exists (select from pgcombine.handoff_replica r where r.name = u.name)
      and not exists (select from pgcombine.handoff_server s where s.name = u.name)
$$;
