-- pgcombine_internal.remove_load(load) → boolean
-- Removes a load with its stage, for give_up_load; returns whether it is gone. False: see drop_stage.
-- Runs with its owner's rights. The caller's right follows from the load: the calling transaction has marked it as
-- ended, which needs the rights of the load's role.
-- Tables written: pgcombine.spark_load, spark_alive; drops the stage.
-- Errors: PC030 no such load ends in this transaction.
create or replace function pgcombine_internal.remove_load(load uuid)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _load pgcombine.spark_load;
begin
    perform pgcombine_internal.caller();
    select l.* into _load from pgcombine.spark_load l where l.load = remove_load.load and l.ended_at = now();
    perform pgcombine_internal.require(found, 'PC030', format('no load %s ends in this transaction', remove_load.load),
        'call pgcombine_internal.give_up_load');
    if not pgcombine_internal.drop_stage(_load.number) then
        return false;
    end if;
    delete from pgcombine.spark_alive a where a.load = _load.load;
    delete from pgcombine.spark_load l where l.load = _load.load;
    return true;
end
$$;
