-- Returns one object of pgcombine's schemas that belongs neither to the current role nor to a superuser: its
-- description, its owner, and the current role. No row if there is none. An upgrade refuses such an object, since its
-- owner could put code into it that users of pgcombine run. A trigger function counts only if a table of pgcombine uses
-- it. A function that runs statements with the rights of its owner doesn't count if its body refuses to run with the
-- rights of another role.
select case when o.classid = 'pg_namespace'::regclass then 'the ' || pg_describe_object(o.classid, o.objid, 0)
            else pg_describe_object(o.classid, o.objid, 0) || ' in schema ' || n.nspname end,
       r.rolname, current_user
from pg_namespace n
cross join lateral (
    select 'pg_namespace'::regclass::oid as classid, n.oid as objid, n.nspowner as owner
    union all
    select d.classid, d.objid, s.refobjid
    from pg_depend d
    join pg_shdepend s on s.classid = d.classid and s.objid = d.objid and s.objsubid = 0 and s.deptype = 'o'
    join pg_database b on b.oid = s.dbid and b.datname = current_database()
    where d.refclassid = 'pg_namespace'::regclass and d.refobjid = n.oid
) o
join pg_roles r on r.oid = o.owner
where n.nspname in ('pgcombine', 'pgcombine_internal') and not r.rolsuper and r.rolname <> current_user
  and not exists (
    select from pg_proc p
    where o.classid = 'pg_proc'::regclass and p.oid = o.objid and p.prorettype = 'trigger'::regtype
      and not exists (select from pg_trigger t join pg_class c on c.oid = t.tgrelid
                      where t.tgfoid = p.oid and c.relnamespace = to_regnamespace('pgcombine')))
  and not exists (
    select from pg_proc p
    where o.classid = 'pg_proc'::regclass and p.oid = o.objid and p.prosrc ~ (
        '^\s*begin\s+if current_user operator\(pg_catalog\.<>\)\s+E?''(?:[^'']|'''')*''\s+or [^;]+?\sthen\s+'
        'raise exception [^;]+;'
        '\s+end if;\s+begin\s+return query execute statement;\s+raise sqlstate ''PC099''; --[^;]*'
        '\s+exception\s+when sqlstate ''PC099'' then perform pgcombine_internal\.deallocate_new\(\);'
        '\s+when others or query_canceled or assert_failure then\s+perform pgcombine_internal\.deallocate_new\(\);'
        '\s+raise;\s+end;\s+end\s*$'))
order by o.classid <> 'pg_namespace'::regclass, n.nspname, 1
limit 1
