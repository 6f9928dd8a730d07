-- pgcombine.clean_loads([older_than, runs_older_than]) → (loads, runs)
-- The janitor: removes loads that died, with their stages, and ids of runs from long ago. Workers call it.
--   older_than       a load of which nobody was heard for so long, and at whose stage nobody is, has died. One that is
--                    writing or is directed by a living JDBC job is left alone, whatever its age. Should a load be
--                    removed that does go on, it fails, and nothing of it is applied
--   runs_older_than  ids of runs are forgotten then: to run them again would count twice. Of each stream the last
--                    batch is kept for ever
-- Returns how many of each were removed.
-- Tables written: pgcombine.spark_load, spark_alive, spark_part, spark_run; drops stages.
create or replace function pgcombine.clean_loads(older_than interval default '1 day', runs_older_than interval default '30 days',
    out loads bigint, out runs bigint)
language plpgsql
as $$
declare
    _number bigint;
    _load uuid;
begin
    loads := 0;
    runs := 0;
    begin
        lock table pgcombine.spark_alive in share update exclusive mode nowait; -- which loads that begin don't wait for
    exception when lock_not_available then
        return; -- another janitor is at it
    end;
    for _load in
        select l.load from pgcombine.spark_load l
        where l.ended_at is not null or l.seen_at <= now() - clean_loads.older_than
        for update skip locked
    loop
        if pgcombine.give_up_load(_load, if_idle => true) then
            loads := loads + 1;
        end if;
    end loop;
    for _number in -- their queue was dropped
        select substring(c.relname from '[0-9]+$')::bigint from pg_class c
        where c.relnamespace = 'pgcombine'::regnamespace and c.relkind = 'r' and c.relname ~ '^spark_stage_[0-9]{1,18}$'
          and not exists (select from pgcombine.spark_load l where 'spark_stage_' || l.number = c.relname)
    loop
        if pgcombine.drop_stage(_number) then
            loads := loads + 1;
        end if;
    end loop;
    delete from pgcombine.spark_alive a where not exists (select from pgcombine.spark_load l where l.load = a.load);
    delete from pgcombine.spark_run r
    where r.at <= now() - clean_loads.runs_older_than
      and (r.stream is null or exists (
          select from pgcombine.spark_run later
          where later.queue = r.queue and later.stream = r.stream and later.batch > r.batch));
    get diagnostics runs = row_count;
end
$$;
