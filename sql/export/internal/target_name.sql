-- pgcombine_internal.target_name(export) → text
-- Returns the quoted name of the table that the exporter postgres writes to, with its schema if one was given.
-- Errors: PC021 unknown export.
create or replace function pgcombine_internal.target_name(export text)
returns text
language sql stable
as $$
    select string_agg(quote_ident(n.part), '.' order by n.i)
    from pgcombine_internal.require_export(target_name.export) e
    cross join unnest(parse_ident(coalesce(e.target_table, e.export))) with ordinality n (part, i)
$$;
