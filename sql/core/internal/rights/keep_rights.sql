-- pgcombine_internal.keep_rights([right, role])
-- Grants the rights work and monitor on what the schema has by now: one of them to a role, or both to all roles that
-- have them. Upgrades, and what makes tables or views, call it.
create or replace function pgcombine_internal.keep_rights("right" text default null, role name default null)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    _grant text;
begin
    for _grant in
        select format('grant %s on %s to %I', p.privileges, p.object, h.role)
        from (select keep_rights."right", keep_rights.role where keep_rights.role is not null
              union
              select m."right", pg_get_userbyid(a.grantee) -- as has_right tells
              from (values ('work', 'pgcombine.pass', 'DELETE'),
                           ('monitor', 'pgcombine.pass_minute', 'SELECT')) m ("right", relation, privilege)
              join pg_class c on c.oid = m.relation::regclass
              cross join lateral aclexplode(c.relacl) a
              where keep_rights.role is null and a.privilege_type = m.privilege
                and a.grantee not in (0, c.relowner)) h ("right", role)
        cross join lateral pgcombine_internal.right_privileges(h."right", null, h.role) p
    loop
        execute _grant;
    end loop;
end
$$;
