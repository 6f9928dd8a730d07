-- pgcombine_internal.front_list(columns [, role, form]) → text
-- Returns the columns of a front as one text, each written by a template (see fill) and separated by commas.
--   columns  see pgcombine.front
--   role     'key' or 'value'; null: both
--   form     the template. {name}: the column's name. {type}: its type. {collate}: the word collate and the column's
--            collation, or nothing. {initial}: the default of an update, as a literal. {number}: its place, from 1
create or replace function pgcombine_internal.front_list(columns jsonb, role text default null,
    form text default '{name}')
returns text
language sql stable
as $$
    select string_agg(pgcombine_internal.fill(form, jsonb_build_object('name', quote_ident(c ->> 'name'),
            'type', c ->> 'type', 'collate', ' collate ' || (c ->> 'collation'),
            'initial', quote_nullable(c ->> 'initial'), 'number', n)), ', ' order by n)
    from jsonb_array_elements(front_list.columns) with ordinality e (c, n)
    where c ->> 'role' = coalesce(front_list.role, c ->> 'role')
$$;
