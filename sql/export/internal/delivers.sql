-- pgcombine_internal.delivers(export) → boolean
-- Returns whether this server delivers the export (see disown_export).
create or replace function pgcombine_internal.delivers(export text)
returns boolean
language sql stable
as $$
    select exists (select from pgcombine.export_bucket x where x.export = delivers.export and x.after is not null)
$$;
