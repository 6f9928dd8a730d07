-- pgcombine.grant_export(role, export …)
-- Lets a role deliver the entries of exports, as export workers do.
--   export  '*': all exports, also later ones
-- Privileges: select pgcombine_internal.right_privileges('export', 'words') lists them; revoke_right takes them away.
-- Errors: PC021 unknown export; 42501 the caller isn't the owner.
create or replace function pgcombine.grant_export(role name, variadic exports text[])
returns void
language sql
as $$
    select pgcombine_internal.grant_right('export', grant_export.role, grant_export.exports)
$$;
