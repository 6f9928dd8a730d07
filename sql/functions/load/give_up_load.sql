-- pgcombine.give_up_load(load [, if_idle]) → boolean
-- Removes what is left of a load, and nothing that was applied. True: it is gone, or was; false: writers are still
-- at its stage, which clean_loads will remove when they have gone.
--   if_idle  leave a load alone at whose stage somebody is: it goes on
-- Tables written: pgcombine.spark_load, spark_part, spark_alive; drops the stage.
-- Errors: 42501 the caller may not insert into the queue that it is for.
create or replace function pgcombine.give_up_load(load uuid, if_idle boolean default false)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _load pgcombine.spark_load;
begin
    select l.* into _load from pgcombine.spark_load l where l.load = give_up_load.load for update;
    if not found then
        return true;
    end if;
    if not has_any_column_privilege(pgcombine.caller(),
        format('pgcombine.%I', _load.queue || case _load.kind when 'values' then '_values' else '_updates' end), 'insert')
    then
        raise exception 'permission denied: the load isn''t one of %', pgcombine.caller()
            using errcode = '42501', hint = 'it takes the right to insert into the queue''s table';
    end if;
    if _load.kind <> 'token' and not pgcombine.drop_stage(_load.number) then
        update pgcombine.spark_load l set ended_at = now()
        where l.load = give_up_load.load and l.ended_at is null and not give_up_load.if_idle;
        return false;
    end if;
    delete from pgcombine.spark_alive a where a.load = give_up_load.load;
    delete from pgcombine.spark_load l where l.load = give_up_load.load;
    return true;
end
$$;
