-- pgcombine_internal.replace_view(name, query)
-- Makes a view of a queue again. A view whose columns had other types can't be replaced. It is renamed, and the new one
-- has its privileges; the upgrade that runs drops it (see queries/set_aside.sql).
create or replace function pgcombine_internal.replace_view(name text, query text)
returns void
language plpgsql
as $$
declare
    _view constant regclass := to_regclass(format('pgcombine.%I', replace_view.name));
begin
    execute format('create or replace view pgcombine.%I as %s', replace_view.name, replace_view.query);
exception when invalid_table_definition then
    execute format('alter view %s rename to %I', _view, format('gone %s %s', _view::oid, replace_view.name));
    execute format('create view pgcombine.%I as %s', replace_view.name, replace_view.query);
    perform pgcombine_internal.copy_owner(_view, format('pgcombine.%I', replace_view.name)::regclass);
end
$$;
