-- pgcombine.remove_load(load) → boolean
-- Removes a load that has ended, with its stage: whether it is gone. False: somebody is at the stage.
-- Runs with its owner's rights. That the load is marked as ended, which its role alone can do, is what allows it.
-- Tables written: pgcombine.spark_load, spark_part, spark_alive; drops the stage.
-- Errors: PC030 there is no such load that has ended.
create or replace function pgcombine.remove_load(load uuid)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _load pgcombine.spark_load;
begin
    select l.* into _load from pgcombine.spark_load l where l.load = remove_load.load and l.ended_at is not null for update;
    if not found then
        raise exception 'there is no load % that has ended', remove_load.load
            using errcode = 'PC030', hint = 'give it up: pgcombine.give_up_load';
    end if;
    if _load.kind <> 'token' and not pgcombine.drop_stage(_load.number) then
        return false;
    end if;
    delete from pgcombine.spark_alive a where a.load = _load.load;
    delete from pgcombine.spark_load l where l.load = _load.load;
    return true;
end
$$;
