-- pgcombine_internal.clean_loads([older_than, runs_older_than]) → (loads, runs)
-- Removes ended and dead loads with their stages (the tables spark_stage_<n>), stages of loads whose queue was dropped,
-- and ids of old runs. Returns how many loads or stages, and how many ids were removed. Does nothing while another
-- session runs it.
--   older_than       a load is dead if no session has joined it for this long and none uses its stage. If the function
--                    removes a load whose job continues, none of the load's rows are applied
--   runs_older_than  ids of runs are deleted at this age. A job that runs again with such an id counts twice. The id
--                    of a stream's last batch into a queue stays
-- Tables written: pgcombine.spark_load, spark_alive, token; drops stages.
create or replace function pgcombine_internal.clean_loads(older_than interval default '1 day',
    runs_older_than interval default '30 days', out loads bigint, out runs bigint)
language plpgsql
as $$
declare
    _number bigint;
    _load uuid;
begin
    loads := 0;
    runs := 0;
    begin
        lock table pgcombine.spark_alive in share update exclusive mode nowait; -- new loads don't wait for this lock
    exception when lock_not_available then
        return; -- another session is cleaning up
    end;
    for _load in
        select l.load from pgcombine.spark_load l
        where l.ended_at is not null or l.seen_at <= now() - older_than
        for update skip locked
    loop
        if pgcombine_internal.give_up_load(_load, if_idle => true) then
            loads := loads + 1;
        end if;
    end loop;
    for _number in -- stages of loads whose queue was dropped
        select substring(c.relname from '[0-9]+$')::bigint from pg_class c
        where c.relnamespace = 'pgcombine'::regnamespace and c.relkind = 'r' and c.relname ~ '^spark_stage_[0-9]{1,18}$'
          and not exists (select from pgcombine.spark_load l where 'spark_stage_' || l.number = c.relname)
    loop
        if pgcombine_internal.drop_stage(_number) then
            loads := loads + 1;
        end if;
    end loop;
    delete from pgcombine.spark_alive a where not exists (select from pgcombine.spark_load l where l.load = a.load);
    delete from pgcombine.token r
    where r.role <> '' and r.at <= now() - runs_older_than
      and (r.stream is null or exists (
          select from pgcombine.token later
          where (later.queue, later.role, later.stream) = (r.queue, r.role, r.stream) and later.batch > r.batch));
    get diagnostics runs = row_count;
end
$$;
