-- pgcombine_internal.operator_name(operator) → text
-- Returns an operator as written between its operands, independent of the search path: operator(pg_catalog.=).
create or replace function pgcombine_internal.operator_name(operator oid)
returns text
language sql stable
as $$
    select format('operator(%I.%s)', n.nspname, o.oprname)
    from pg_operator o join pg_namespace n on n.oid = o.oprnamespace
    where o.oid = $1
$$;
