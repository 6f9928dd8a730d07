-- The comment of the schema phrasecount, and a role that owns the schema, a table or a function in it, but isn't
-- trusted (null: there is none). No row: there is no such schema. The current role, the owner of the schema pgcombine
-- and superusers are trusted.
select obj_description(n.oid, 'pg_namespace'), (
    select r.rolname
    from pg_roles r
    where r.oid in (
            select n.nspowner
            union all select c.relowner from pg_class c where c.relnamespace = n.oid
            union all select p.proowner from pg_proc p where p.pronamespace = n.oid)
      and not r.rolsuper and r.rolname <> current_user
      and r.oid <> all (select p.nspowner from pg_namespace p where p.nspname = 'pgcombine')
    limit 1)
from pg_namespace n
where n.nspname = 'phrasecount'
