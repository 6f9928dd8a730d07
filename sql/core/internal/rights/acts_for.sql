-- pgcombine_internal.acts_for(role) → boolean
-- Returns whether the current user is this role or has its privileges as a member; false for a dropped role. has_right
-- says why the search path is pinned.
create or replace function pgcombine_internal.acts_for(role text)
returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select acts_for.role = current_user
        or exists (select from pg_roles r where r.rolname = acts_for.role and pg_has_role(current_user, r.oid, 'usage'))
$$;
