-- pgcombine_internal.end_values(load) → bigint
-- Runs end_initialize for end_load. It has its owner's rights, for the reason given in begin_values.
-- Tables written: <queue>_values.
-- Errors: PC030 there is no such load; 42501 the load's role may not insert values.
create or replace function pgcombine_internal.end_values(load uuid)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _load pgcombine.spark_load;
begin
    perform pgcombine_internal.caller();
    select l.* into _load from pgcombine.spark_load l
    where l.load = end_values.load and l.kind = 'values' and l.ended_at = now();
    perform pgcombine_internal.require(found, 'PC030', format('no load %s of values ends in this transaction', end_values.load), 'call pgcombine_internal.end_load');
    perform pgcombine_internal.require_right(_load.queue, 'initialize', _load.role::name);
    return pgcombine_internal.end_initialize(_load.queue);
end
$$;
