-- pgcombine.give_up_load(load [, if_idle]) → boolean
-- Removes what is left of a load, and nothing that was applied. True: it is gone, or was, or is another role's; false:
-- writers are still at its stage, which clean_loads will remove when they have gone.
--   if_idle  leave a load alone at whose stage somebody is: it goes on
-- Tables written: pgcombine.spark_load; those of remove_load.
create or replace function pgcombine.give_up_load(load uuid, if_idle boolean default false)
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
    update pgcombine.spark_load l set ended_at = now() where l.load = _load.load; -- again: remove_load wants it so
    if pgcombine.remove_load(_load.load) then
        return true;
    end if;
    if give_up_load.if_idle then
        update pgcombine.spark_load l set ended_at = _load.ended_at where l.load = _load.load;
    end if;
    return false;
end
$$;
