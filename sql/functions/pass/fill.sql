-- pgcombine.fill(template, parts) → text
-- A text in which each {name} is replaced by the part of this name. It has no other braces; parts may.
create or replace function pgcombine.fill(template text, parts jsonb)
returns text
language sql immutable
as $$
    select string_agg(case when p.place % 2 = 0 then parts ->> p.piece else p.piece end, '' order by p.place)
    from regexp_split_to_table(template, '[{}]') with ordinality p (piece, place)
$$;
