-- pgcombine_internal.granted_privileges(role) → setof text
-- Returns the privileges granted to a role itself on the schema's tables, views and sequences, in the wording of
-- right_privileges.
create or replace function pgcombine_internal.granted_privileges(role name)
returns setof text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select format('%s%s on %s%s', lower(a.privilege_type), ' (' || quote_ident(o.attname) || ')',
                  case o.relkind when 'S' then 'sequence ' end, o.relation)
    from (select c.oid::regclass as relation, c.relkind, null::name as attname, c.relacl as acl
          from pg_class c where c.relnamespace = 'pgcombine'::regnamespace and c.relacl is not null
          union all
          select c.oid::regclass, c.relkind, t.attname, t.attacl
          from pg_class c join pg_attribute t on t.attrelid = c.oid
          where c.relnamespace = 'pgcombine'::regnamespace and t.attacl is not null) o
    cross join lateral aclexplode(o.acl) a
    where a.grantee = (select r.oid from pg_roles r where r.rolname = granted_privileges.role)
$$;
