-- pgcombine_internal.may_operate_export(export [, role]) → boolean
-- Returns whether a role may operate the queue of an export; false if there is no such export.
create or replace function pgcombine_internal.may_operate_export(export text, role name default current_user)
returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select coalesce((select pgcombine_internal.has_right(e.queue, 'operate', may_operate_export.role)
                     from pgcombine.export e where e.export = may_operate_export.export), false)
$$;
