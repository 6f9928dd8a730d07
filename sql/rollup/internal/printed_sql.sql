-- pgcombine_internal.printed_sql(relation [, tree]) → text
-- Returns an expression over a table's columns as PostgreSQL prints it or, without tree, a view's query. The text
-- doesn't depend on the session's settings, and means the same in every session with the search path pg_catalog: a
-- string with a backslash is written as E'…', since standard_conforming_strings would change the meaning of '…'.
create or replace function pgcombine_internal.printed_sql(relation regclass, tree pg_node_tree default null)
returns text
language sql stable
set search_path = pg_catalog
set datestyle = 'ISO, MDY'
set intervalstyle = 'postgres'
set timezone = 'UTC'
set bytea_output = 'hex'
set extra_float_digits = 1
set lc_monetary = 'C'
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
    -- printed SQL has no comments, dollar quotes or E'…', so quotes alone divide it into strings, names and the rest
    select string_agg(case when starts_with(p.part[1], '''') and strpos(p.part[1], chr(92)) > 0
        then ' E' || replace(p.part[1], chr(92), chr(92) || chr(92)) else p.part[1] end, '' order by p.number)
    from regexp_matches(case when tree is null then pg_get_viewdef(relation) else pg_get_expr(tree, relation) end,
        '[^''"]+|''(?:[^'']|'''')*''|"[^"]*"', 'g') with ordinality p (part, number)
$$;
