-- pgcombine_internal.require_export(export) → pgcombine.export
-- Returns the definition of an export.
-- Errors: PC021 there is no such export; 42501 the caller may not read exports.
create or replace function pgcombine_internal.require_export(export text)
returns pgcombine.export
language plpgsql stable
as $$
declare
    _export pgcombine.export;
begin
    if not has_table_privilege('pgcombine.export', 'select') then
        perform pgcombine_internal.require_right(null, 'work');
    end if;
    select e.* into _export from pgcombine.export e where e.export = require_export.export;
    if not found then
        raise exception 'there is no export "%"', require_export.export
            using errcode = 'PC021', hint = 'pgcombine export ls lists them';
    end if;
    return _export;
end
$$;
