-- pgcombine_internal.percent_decoded(text) → text
-- Returns the text with each %XX replaced with the ASCII character that it stands for, or with ? for any other byte.
create or replace function pgcombine_internal.percent_decoded(text text)
returns text
language sql immutable
as $$
    select coalesce(string_agg(
        case when p.part !~ '^%[0-9A-Fa-f]{2}$' then p.part
             when lower(substr(p.part, 2)) between '01' and '7f' then chr(('x' || substr(p.part, 2))::bit(8)::integer)
             else '?' end, '' order by p.number), '')
    from (select m[1] as part, number
          from regexp_matches(percent_decoded.text, '(%[0-9A-Fa-f]{2}|[^%]+|%)', 'g') with ordinality r (m, number)) p
$$;
