-- pgcombine_internal.initialize_load(load, ended) → bigint
-- end_load calls the function twice: before it inserts values (ended is false), and after that. The first call runs
-- begin_initialize and returns 0. The second one runs end_initialize and returns its result.
-- Runs with its owner's rights. The caller's right follows from the load: the calling transaction has marked it as
-- ended, which needs the rights of the load's role.
-- Tables written: <queue>_values.
-- Errors: PC030 no such load of values ends in this transaction; 42501 the load's role lacks the right to insert
-- values; those of begin_initialize.
create or replace function pgcombine_internal.initialize_load(load uuid, ended boolean)
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
    where l.load = initialize_load.load and l.kind = 'values' and l.ended_at = now();
    perform pgcombine_internal.require(found, 'PC030',
        format('no load %s of values ends in this transaction', initialize_load.load),
        'call pgcombine_internal.end_load');
    perform pgcombine_internal.require_right(_load.queue, 'initialize', _load.role::name);
    if ended then
        return pgcombine_internal.end_initialize(_load.queue);
    end if;
    perform pgcombine_internal.begin_initialize(_load.queue);
    return 0;
end
$$;
