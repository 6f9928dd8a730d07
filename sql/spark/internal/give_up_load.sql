-- pgcombine_internal.give_up_load(load [, if_idle]) → boolean
-- Removes a load and its stage; rows that were applied stay in the queue. Returns true if the load is gone. Returns
-- false if its stage can't be dropped yet (see drop_stage).
--   if_idle  whether to leave the load unchanged if its stage can't be dropped yet, so that the load can continue.
--            False: the load is then marked as ended
-- Tables written: pgcombine.spark_load, spark_alive; drops the stage.
create or replace function pgcombine_internal.give_up_load(load uuid, if_idle boolean default false)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    _load pgcombine.spark_load;
begin
    select l.* into _load from pgcombine.spark_load l where l.load = give_up_load.load for update;
    if not found then
        return true;
    end if;
    if pgcombine_internal.drop_stage(_load.number) then
        delete from pgcombine.spark_alive a where a.load = _load.load;
        delete from pgcombine.spark_load l where l.load = _load.load;
        return true;
    end if;
    if not if_idle then
        update pgcombine.spark_load l set ended_at = now() where l.load = _load.load;
    end if;
    return false;
end
$$;
