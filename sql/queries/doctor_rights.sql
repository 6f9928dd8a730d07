-- The rights of pgcombine, by queue, and the privileges that this role lacks for each. The subject is empty for a right
-- on all queues. If the first parameter is null, only rights that the role has are returned.
--   has      whether the role has the right as the functions check it
--   lacking  the privileges that belong to the right and that the role lacks
-- Parameters, in this order: the rights, the queues, the queues again, and the rights twice again. Null: all.
with found as materialized (
    select r."right", s.subject, not %s::text[] is null as asked, -- true: the parameter names rights
           pgcombine_internal.has_right(s.subject, r."right") as has,
           pg_has_role((select n.nspowner from pg_namespace n where n.nspname = 'pgcombine'), 'usage') as owner
    from (select p."right", bool_and(p.object ~ '[.]') as everywhere from pgcombine.right_privilege p group by 1) r
    cross join lateral (
        select '' where r.everywhere
        union all
        select q.queue from pgcombine.queue q
        where not r.everywhere and (%s::text[] is null or q.queue = any (%s::text[]))
    ) s (subject)
    where %s::text[] is null or r."right" = any (%s::text[])
)
select f."right", f.subject, f.has or f.owner as has, array(
    select format('%%s on %%s', a.privilege, p.object)
    from (select * from pgcombine_internal.right_privileges(f."right", null)
          union all
          select * from pgcombine_internal.right_privileges(f."right", f.subject) where f.subject <> '') p
    cross join lateral regexp_matches(p.privileges, '(\w+)(?: \(([^)]*)\))?', 'g') m
    cross join lateral (select trim(n) from unnest(string_to_array(m[2], ',')) n
                        union all select null where m[2] is null) c (name)
    cross join lateral (select concat(m[1], ' (' || c.name || ')') as privilege) a
    where not f.owner
      and not case when p.object like 'sequence %%' then has_sequence_privilege(substr(p.object, 10), m[1])
                   when c.name is not null then has_column_privilege(p.object, (parse_ident(c.name))[1], m[1])
                   else has_table_privilege(p.object, m[1]) end
    order by 1
) as lacking
from found f
where f.has or f.asked or f.owner
order by 1, 2
