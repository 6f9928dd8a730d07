-- Drops the functions of an older version: create or replace with other parameters adds an overload and leaves
-- the old one. What this transaction created, replaced or regenerated stays.
do $$
declare
    _stale regprocedure;
begin
    for _stale in
        select p.oid::regprocedure
        from pg_proc p
        where p.pronamespace in ('pgcombine'::regnamespace, 'phrasecount'::regnamespace)
          and p.prokind in ('f', 'p', 'a')
          and age(p.xmin) > age(pg_current_xact_id()::xid) -- subtransactions are younger
        order by p.prokind -- aggregates go before the functions that they are made of
    loop
        execute format('drop routine %s', _stale);
    end loop;
end
$$
