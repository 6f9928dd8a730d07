-- pgcombine_internal.refuse_recount(sources)
-- Raises unless the caller may run the mappings of attached tables over all rows of the tables (see recount).
-- Errors: 42501 row security hides rows, or a table belongs to another role.
create or replace function pgcombine_internal.refuse_recount(sources regclass[])
returns void
language plpgsql stable
as $$
begin
    perform pgcombine_internal.require(
        pg_has_role(c.relowner, current_user, 'usage') or c.relowner = (select n.nspowner from pg_namespace n where n.nspname = 'pgcombine'),
        '42501', format('the mapping of %s is its owner''s and would run with the rights of role "%s"', c.oid::regclass, current_user),
        format('verify as that role: set role %I (it needs pgcombine.grant_read)', pg_get_userbyid(c.relowner)))
    from pg_class c
    where c.oid = any (sources);
    perform pgcombine_internal.require(not row_security_active(s), '42501',
        format('row security hides rows of %s from role "%s": it can''t be recounted', s, current_user), 'verify as a role that row security doesn''t bind')
    from unnest(sources) s;
end
$$;
