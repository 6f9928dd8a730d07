-- pgcombine_internal.procedure_name(procedure) → text
-- Returns the qualified name of a function or an aggregate, without its arguments.
create or replace function pgcombine_internal.procedure_name(procedure oid)
returns text
language sql stable
as $$
    select format('%I.%I', n.nspname, p.proname) from pg_proc p join pg_namespace n on n.oid = p.pronamespace
        where p.oid = $1
$$;
