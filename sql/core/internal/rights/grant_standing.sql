-- pgcombine_internal.grant_standing(subject, is_export)
-- Grants the rights on a new queue, or a new export, to the roles that have them on '*' (see the view every_queue).
--   subject  the queue or the export
-- Tables written: pgcombine.granted_right.
-- Errors: those of grant_right.
create or replace function pgcombine_internal.grant_standing(subject text, is_export boolean default false)
returns void
language sql
as $$
    delete from pgcombine.granted_right g -- rights on a queue or export that had this name before
    where g.subject = grant_standing.subject and (g."right" = 'export') = grant_standing.is_export;
    select pgcombine_internal.grant_right(a.attname, pg_get_userbyid(e.grantee), array[grant_standing.subject])
    from pg_attribute a cross join lateral aclexplode(a.attacl) e
    where a.attrelid = 'pgcombine.every_queue'::regclass and a.attname <> 'monitor' and e.grantee <> 0
      and (a.attname = 'export') = grant_standing.is_export
    order by a.attnum
$$;
