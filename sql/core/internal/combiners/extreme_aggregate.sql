-- pgcombine_internal.extreme_aggregate(type, strategy) → text
-- Returns the qualified name of the aggregate of the least (strategy 1) or the greatest (5) value in a type's default
-- order.
-- PostgreSQL's own aggregate is found by its sort operator. Types without one (uuid, bytea, boolean, jsonb …) get
-- pgcombine's, which works for every order but calls a function a row.
create or replace function pgcombine_internal.extreme_aggregate(type oid, strategy integer)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select coalesce((
        select format('%I.%I', n.nspname, p.proname)
        from pg_aggregate a
        join pg_proc p on p.oid = a.aggfnoid
        join pg_namespace n on n.oid = p.pronamespace
        join pg_operator o on o.oid = a.aggsortop
        where a.aggsortop = pgcombine_internal.type_operator(type, strategy)
          and p.pronargs = 1 and p.proargtypes[0] = o.oprleft and n.nspname <> 'pgcombine_internal'
        order by p.oid
        limit 1),
        case strategy when 1 then 'pgcombine_internal.least' else 'pgcombine_internal.greatest' end)
$$;
