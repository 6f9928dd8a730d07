-- pgcombine.rights
-- One row for each right that a role was granted, by grant_right or by the privilege that shows the right (see
-- has_right). A role with the right work has all other rights, which the view doesn't list. Every role sees all rows.
--   right  name of the right
--   role   name of the role that has it; its members have it, too
--   queue  name of the queue; null: all queues
create or replace view pgcombine.rights as
select distinct p."right", pg_get_userbyid(a.grantee) as role, p.queue
from (
    select s."right", s.privilege, q.queue, to_regclass('pgcombine.' || quote_ident(q.queue || s.suffix)) as relation
    from pgcombine.queue q
    cross join (
        select l."right", upper(substring(l.privileges from '([a-z]+)[^,]*$')) as privilege, l.object as suffix
        from pgcombine.right_privilege l where l.object !~ '[.]') s
    union all
    values ('work', 'DELETE', null, to_regclass('pgcombine.pass')),
           ('monitor', 'SELECT', null, to_regclass('pgcombine.pass_minute'))
) p
join pg_class c on c.oid = p.relation
cross join lateral (
    select e.* from aclexplode(c.relacl) e
    union all
    select e.* from pg_attribute t cross join lateral aclexplode(t.attacl) e where t.attrelid = c.oid and t.attnum > 0
) a
where a.privilege_type = p.privilege and a.grantee not in (0, c.relowner)
  and (p."right" = 'work' or not pgcombine_internal.has_right(null, 'work', pg_get_userbyid(a.grantee)))
  and pgcombine_internal.has_right(p.queue, p."right", pg_get_userbyid(a.grantee));
