-- pgcombine_internal.replace_view(name, query)
-- Replaces a view of a queue. PostgreSQL can't replace a view whose columns had other names or types. Such a view is
-- renamed, and the new view gets its owner and privileges. The upgrade in progress drops the renamed view, unless
-- other objects depend on it (see queries/set_aside.sql).
create or replace function pgcombine_internal.replace_view(name text, query text)
returns void
language plpgsql
as $$
declare
    _view constant regclass := to_regclass(format('pgcombine.%I', name));
begin
    execute format('create or replace view pgcombine.%I as %s', name, query);
exception when invalid_table_definition then
    execute format('alter view %s rename to %I', _view, format('gone %s %s', _view::oid, name));
    execute format('create view pgcombine.%I as %s', name, query);
    perform pgcombine_internal.copy_owner(_view, format('pgcombine.%I', name)::regclass);
end
$$;
