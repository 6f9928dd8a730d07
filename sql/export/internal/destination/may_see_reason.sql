-- pgcombine_internal.may_see_reason(kind, name) → boolean
-- Returns whether the caller may see why deliveries to a destination fail. The error of an export's destination may
-- repeat delivered values. So the caller needs the right to deliver the export, or to read or operate its queue. For a
-- server, the result is true.
create or replace function pgcombine_internal.may_see_reason(kind text, name text)
returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select may_see_reason.kind <> 'export' or pgcombine_internal.has_right(may_see_reason.name, 'export') or coalesce(
        (select pgcombine_internal.has_right(e.queue, 'operate') or pgcombine_internal.has_right(e.queue, 'read')
         from pgcombine.export e where e.export = may_see_reason.name), false)
$$;
