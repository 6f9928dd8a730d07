-- pgcombine_internal.require_delivering(export)
-- Raises an error unless this server delivers the export (see disown_export).
-- Errors: PC021 unknown export; PC045 another server owns it.
create or replace function pgcombine_internal.require_delivering(export text)
returns void
language sql stable
as $$
    select pgcombine_internal.require(pgcombine_internal.delivers(e.export),
        'PC045', format('server "%s" delivers export "%s", not this one', e.owner, e.export),
        format('run this there, or let this server deliver: pgcombine export own %s', e.export))
    from pgcombine_internal.require_export(require_delivering.export) e
$$;
