-- pgcombine_internal.under_policies(relation, role) → boolean
-- Returns whether row security policies on a table of a queue apply to a role, as row_security_active does for the
-- current user. Functions with their owner's rights read and write all rows. So they must refuse such a role.
create or replace function pgcombine_internal.under_policies(relation regclass, role name)
returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select exists (
        select from pg_class c join pg_roles r on r.rolname = under_policies.role
        where c.oid = under_policies.relation
          and c.relrowsecurity and not (r.rolsuper or r.rolbypassrls)
          and (c.relforcerowsecurity or not pg_has_role(r.oid, c.relowner, 'usage')))
$$;
