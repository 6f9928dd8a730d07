-- pgcombine_internal.begin_values(load)
-- Runs begin_initialize for end_load: no pass over the queue runs until the transaction ends.
-- Runs with its owner's rights. The caller's right follows from the load: the calling transaction has
-- marked it as ended, and only the load's role can do that.
-- Errors: PC030 there is no such load; 42501 the load's role may not insert values; those of begin_initialize.
create or replace function pgcombine_internal.begin_values(load uuid)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _load pgcombine.spark_load;
begin
    perform pgcombine_internal.caller();
    select l.* into _load from pgcombine.spark_load l
    where l.load = begin_values.load and l.kind = 'values' and l.ended_at = now();
    perform pgcombine_internal.require(found, 'PC030', format('no load %s of values ends in this transaction', begin_values.load), 'call pgcombine_internal.end_load');
    perform pgcombine_internal.require_right(_load.queue, 'initialize', _load.role::name);
    perform pgcombine_internal.begin_initialize(_load.queue);
end
$$;
