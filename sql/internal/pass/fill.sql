-- pgcombine_internal.fill(template, parts) → text
-- Returns a template with each {name} replaced by the part of this name. The template has no other braces; the parts
-- may have some.
create or replace function pgcombine_internal.fill(template text, parts jsonb)
returns text
language sql immutable
as $$
    select string_agg(case when p.place % 2 = 0 then parts ->> p.piece else p.piece end, '' order by p.place)
    from regexp_split_to_table(template, '[{}]') with ordinality p (piece, place)
$$;
