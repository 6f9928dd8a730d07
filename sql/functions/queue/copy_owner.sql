-- pgcombine.copy_owner(source, target)
-- Gives a table the owner and the privileges of another, and a full replica identity if that has one.
create or replace function pgcombine.copy_owner(source regclass, target regclass)
returns void
language plpgsql
as $$
declare
    _grant record;
begin
    if (select s.relowner <> t.relowner from pg_class s, pg_class t where s.oid = source and t.oid = target) then
        execute format('alter table %s owner to %s', target, (select c.relowner::regrole from pg_class c where c.oid = source));
    end if;
    if (select c.relreplident = 'f' from pg_class c where c.oid = source) then
        execute format('alter table %s replica identity full', target);
    end if;
    for _grant in
        select a.privilege_type, a.is_grantable, case a.grantee when 0 then 'public' else a.grantee::regrole::text end as grantee
        from pg_class c, aclexplode(c.relacl) a
        where c.oid = source and a.grantee <> c.relowner
    loop
        execute format('grant %s on %s to %s%s', _grant.privilege_type, target, _grant.grantee,
            case when _grant.is_grantable then ' with grant option' else '' end);
    end loop;
end
$$;
