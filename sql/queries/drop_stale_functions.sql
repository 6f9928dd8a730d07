-- Drops the functions of an older version. If a function's parameters change, create or replace adds an overload and
-- leaves the old one. Functions that this transaction created, replaced or regenerated stay.
do $$
declare
    _stale regprocedure;
begin
    for _stale in
        select p.oid::regprocedure
        from pg_proc p
        where p.pronamespace in ('pgcombine'::regnamespace, 'pgcombine_internal'::regnamespace)
          and p.prokind in ('f', 'p', 'a')
          and age(p.xmin) > age(pg_current_xact_id()::xid) -- the ids of subtransactions are younger
        order by p.prokind -- aggregates first, since they depend on functions
    loop
        execute format('drop routine %s', _stale);
    end loop;
end
$$
