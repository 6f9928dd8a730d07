-- pgcombine_internal.begin_load(load, queue, run_id [, kind, join_only]) → text
-- Begins a load, or joins one in progress. Returns the table, in schema pgcombine, that takes the load's rows. Null:
-- the run was applied before, and nothing is to be written.
--   load       the id of this attempt at the run. A Spark job that runs again uses another id
--   run_id     names the run; a role's run is applied once. A stream's batch has the run id 'stream:<query>:<batch>'
--   kind       what end_load makes of the rows, which wait in the load's table, spark_stage_<n>. stage: updates.
--              values: the first values of an empty queue
--   join_only  whether to raise an error instead of beginning a load
-- Tables written: pgcombine.spark_load; those of open_stage.
-- Errors: PC001 unknown queue; PC003 unknown kind, no run id; PC030 the load has ended, or wasn't begun (join_only);
-- 42501 the caller lacks the right work.
create or replace function pgcombine_internal.begin_load(load uuid, queue text, run_id text, kind text default 'stage',
    join_only boolean default false)
returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(queue);
    _load pgcombine.spark_load;
    _new boolean := false;
begin
    perform pgcombine_internal.require(kind in ('stage', 'values'), 'PC003',
        'unknown kind of load: ' || coalesce(kind, 'null'), 'give stage or values');
    perform pgcombine_internal.require(run_id <> '', 'PC003',
        format('a load into queue "%s" needs a run id', _queue.queue),
        'give any text that names the run, such as a date');
    perform pgcombine_internal.require_right(_queue.queue, 'work');
    if pgcombine_internal.run_applied(_queue.queue, run_id) then
        return null;
    end if;

    select l.* into _load from pgcombine.spark_load l where l.load = begin_load.load;
    if not found and not join_only then
        insert into pgcombine.spark_load (load, queue, run_id, kind)
        values (begin_load.load, _queue.queue, begin_load.run_id, begin_load.kind) on conflict do nothing;
        _new := found; -- false: another writer has committed the row while this one waited for it
        select l.* into _load from pgcombine.spark_load l where l.load = begin_load.load;
    end if;
    perform pgcombine_internal.require(_load.load is not null and _load.ended_at is null, 'PC030',
        format('the load into queue "%s" has ended', _queue.queue),
        'another attempt at the run was faster, or the load was given up: run it again with the same run id');
    if _new then
        perform pgcombine_internal.open_stage(_load.load);
    end if;
    update pgcombine.spark_load l set seen_at = now()
    where l.load = _load.load and l.seen_at < now() - interval '1 minute';
    return 'spark_stage_' || _load.number;
end
$$;
