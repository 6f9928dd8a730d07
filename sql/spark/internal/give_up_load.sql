-- pgcombine_internal.give_up_load(load [, if_idle]) → boolean
-- Removes a load and its stage; rows that were applied stay in the queue. Returns true if the load is gone or belongs
-- to another role. Returns false if its stage can't be dropped yet (see drop_stage).
--   if_idle  whether to leave the load unchanged if its stage can't be dropped yet, so that the load can continue.
--            False: the load is then marked as ended
-- Tables written: pgcombine.spark_load; those of remove_load.
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
    -- even if the load has ended before, since remove_load requires an end in this transaction
    update pgcombine.spark_load l set ended_at = now() where l.load = _load.load;
    if pgcombine_internal.remove_load(_load.load) then
        return true;
    end if;
    if give_up_load.if_idle then
        update pgcombine.spark_load l set ended_at = _load.ended_at where l.load = _load.load;
    end if;
    return false;
end
$$;
