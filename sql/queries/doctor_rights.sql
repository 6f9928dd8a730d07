-- The rights of pgcombine, by queue (or export), with the privileges that this role lacks for each one.
--   partly  whether the role has the right by has_right all the same: something was revoked, or was never granted
-- Parameter, given twice: the rights to look at; null: all.
select r."right", s.subject, p.lacking,
       cardinality(p.lacking) > 0 and s.subject <> ''
           and case r."right" when 'handoff' then false when 'export' then pgcombine_internal.has_right(s.subject, 'deliver')
                              else pgcombine_internal.has_right(s.subject, r."right") end as partly
from unnest(pgcombine_internal.right_names()) r ("right")
cross join lateral (
    select '' where r."right" in ('monitor', 'replay')
    union all
    select q.queue from pgcombine.queue q where r."right" not in ('monitor', 'replay', 'export')
    union all
    select e.export from pgcombine.export e where r."right" = 'export'
) s (subject)
cross join lateral (
    select array(
        select p.privilege
        from (select * from pgcombine.right_privileges(r."right", null)
              union all
              select * from pgcombine.right_privileges(r."right", s.subject) where s.subject <> '') p (privilege)
        cross join lateral regexp_match(p.privilege, '^(\w+)(?: \((.*)\))? on (sequence )?(.*)$') m
        where not case when m[3] is not null then has_sequence_privilege(m[4], m[1])
                       when m[2] is not null then has_column_privilege(m[4], (parse_ident(m[2]))[1], m[1])
                       else has_table_privilege(m[4], m[1]) end
        order by 1
    ) as lacking
) p
where %s::text[] is null or r."right" = any (%s::text[])
order by array_position(pgcombine_internal.right_names(), r."right"), s.subject
