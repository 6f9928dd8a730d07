-- The rights of pgcombine, by queue or export, and the privileges that this role lacks for each. The subject is empty
-- for a right that is granted without naming a queue or an export. If the first parameter is null, only rights that the
-- role has are returned.
--   has      whether the role has the right as the functions check it
--   lacking  the privileges that belong to the right and that the role lacks
-- Parameters, in this order: the rights, the queues, the queues again, and the rights twice again. Null: all.
with found as materialized (
    select r."right", s.subject, not %s::text[] is null as asked, -- true: the parameter names rights
           case r."right" when 'handoff' then pgcombine_internal.has_right(s.subject, 'write')
               and has_table_privilege('pgcombine.handoff_server', 'select')
                          else pgcombine_internal.has_right(s.subject, r."right") end as has
    from pgcombine.right_kind r
    cross join lateral (
        select '' where r.subject is null
        union all
        select q.queue from pgcombine.queue q
        where r.subject = 'queue' and (%s::text[] is null or q.queue = any (%s::text[]))
        union all
        select e.export from pgcombine.export e where r.subject = 'export'
    ) s (subject)
    where %s::text[] is null or r."right" = any (%s::text[])
)
select f."right", f.subject, f.has, array(
    select p.privilege
    from (select * from pgcombine_internal.right_privileges(f."right", null)
          union all
          select * from pgcombine_internal.right_privileges(f."right", f.subject) where f.subject <> '') p (privilege)
    cross join lateral regexp_match(p.privilege, '^(\w+)(?: \((.*)\))? on (sequence )?(.*)$') m
    where not case when m[3] is not null then has_sequence_privilege(m[4], m[1])
                   when m[2] is not null then has_column_privilege(m[4], (parse_ident(m[2]))[1], m[1])
                   else has_table_privilege(m[4], m[1]) end
    order by 1
) as lacking
from found f
-- a role with the rights of the schema's owner lacks no privilege
where (f.has or f.asked)
    and not pg_has_role((select n.nspowner from pg_namespace n where n.nspname = 'pgcombine'), 'usage')
union all
select f."right", f.subject, true, '{}'
from found f
where pg_has_role((select n.nspowner from pg_namespace n where n.nspname = 'pgcombine'), 'usage')
order by 1, 2
