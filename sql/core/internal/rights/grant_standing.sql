-- pgcombine_internal.grant_standing(name [, subject])
-- Grants the rights on a new queue, or on a new object of a component, to the roles that have them on '*' (see the view
-- every_queue).
--   subject  see the table right_kind
-- Tables written: pgcombine.granted_right.
-- Errors: those of grant_right.
create or replace function pgcombine_internal.grant_standing(name text, subject text default 'queue')
returns void
language sql
as $$
    delete from pgcombine.granted_right g using pgcombine.right_kind k -- rights on a former object of this name
    where g.subject = grant_standing.name and k."right" = g."right" and k.subject = grant_standing.subject;
    select pgcombine.grant_right(k."right", pg_get_userbyid(e.grantee), grant_standing.name)
    from pgcombine.right_kind k
    join pg_attribute a on a.attrelid = to_regclass(k.standing) and a.attname = k."right"
    cross join lateral aclexplode(a.attacl) e
    where k.subject = grant_standing.subject and e.grantee <> 0
    order by k."right"
$$;
