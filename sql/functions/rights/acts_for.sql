-- pgcombine.acts_for(role) → boolean
-- Whether what belongs to a role is the current user's: it is that role, or has its privileges as a member.
-- A role that was dropped is nobody's. The search path is fixed, as in has_right.
create or replace function pgcombine.acts_for(role text)
returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select acts_for.role = current_user
        or exists (select from pg_roles r where r.rolname = acts_for.role and pg_has_role(current_user, r.oid, 'usage'))
$$;
