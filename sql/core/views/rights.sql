-- pgcombine.rights
-- One row for each right that grant_right has granted to a role, as long as the role has it. Every role sees all rows.
-- Privileges that were granted manually aren't listed, except select on a column of every_queue (other than monitor) or
-- of a component's view like it. After a role was renamed, only its rows with '*' are left.
--   right  name of the right
--   role   name of the role that has it; its members have it, too
--   queue  name of the queue, or of a component's object (see right_kind); '*': all that will be created; null: the
--          right is on no single object
create or replace view pgcombine.rights as
select g."right", g.role, nullif(g.subject, '') as queue
from pgcombine.granted_right g
join pg_roles r on r.rolname = g.role
where pgcombine_internal.has_right(g.subject, g."right", r.rolname)
union all
select k."right", pg_get_userbyid(a.grantee), '*'
from pgcombine.right_kind k
join pg_attribute t on t.attrelid = to_regclass(k.standing) and t.attname = k."right"
cross join lateral aclexplode(t.attacl) a
where a.grantee <> 0;
