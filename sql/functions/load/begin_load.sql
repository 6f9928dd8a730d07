-- pgcombine.begin_load(load, queue, run_id [, kind, join_only]) → text
-- Begins a load, or joins one that is under way: every writer may call it. Returns the table, in schema pgcombine,
-- that its rows are to be written to; null: this run was applied already, nothing is to be written.
--   load    names this attempt at the run: a job that is run again has another
--   run_id  what is applied once; for a stream's batch 'stream:<query>:<batch>'
--   kind    stage   rows wait in a table of their own, spark_stage_<n>, until end_load makes updates of them
--           values  they become values: the initial load of an empty queue
--           token   they are updates from the start; each part commits together with claim_part
--   join_only  the load is under way already, or has ended
-- The stage has the queue's columns, and
--   pgcombine_part     the frame's partition, where the writer doesn't know which of its attempts succeeded
--   pgcombine_attempt  tells the attempts at a part apart: a part is written in one transaction
-- It is unlogged. A crash of the server empties it; end_load notices by spark_alive, which it empties as well.
-- Tables written: pgcombine.spark_load, spark_alive; makes the stage.
-- Errors: PC001 unknown queue; PC003 unknown kind, no run id; PC030 the load has ended; 42501 not allowed to enqueue.
create or replace function pgcombine.begin_load(load uuid, queue text, run_id text, kind text default 'stage',
    join_only boolean default false)
returns text
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _queue constant pgcombine.queue := pgcombine.require_queue(begin_load.queue);
    _target constant text := _queue.queue || case begin_load.kind when 'values' then '_values' else '_updates' end;
    _load pgcombine.spark_load;
    _columns text;
    _stage text;
begin
    if begin_load.kind is null or begin_load.kind not in ('stage', 'token', 'values') then
        raise exception 'unknown kind of load: %', coalesce(begin_load.kind, 'null')
            using errcode = 'PC003', hint = 'stage, token or values';
    end if;
    if coalesce(begin_load.run_id, '') = '' then
        raise exception 'a load into queue "%" needs a run id', _queue.queue
            using errcode = 'PC003', hint = 'any text that names the run, such as a date';
    end if;
    if not has_any_column_privilege(pgcombine.caller(), format('pgcombine.%I', _target), 'insert') then
        raise exception 'permission denied: % may not insert into pgcombine.%', pgcombine.caller(), _target
            using errcode = '42501', hint = format('grant insert on pgcombine.%I to %I', _target, pgcombine.caller());
    end if;
    if pgcombine.run_applied(_queue.queue, begin_load.run_id) then
        return null;
    end if;

    perform pg_advisory_xact_lock(hashtextextended('pgcombine.load.' || begin_load.load, 0)); -- one writer makes it
    select l.* into _load from pgcombine.spark_load l where l.load = begin_load.load;
    if _load.ended_at is not null or (_load.load is null and begin_load.join_only) then
        raise exception 'the load into queue "%" has ended', _queue.queue
            using errcode = 'PC030', hint = 'another attempt at it was faster, or the run was given up';
    end if;
    if _load.load is not null then
        update pgcombine.spark_load l set seen_at = now()
        where l.load = begin_load.load and l.seen_at < now() - interval '1 minute';
        return case _load.kind when 'token' then _target else 'spark_stage_' || _load.number end;
    end if;
    insert into pgcombine.spark_load (load, queue, run_id, kind)
    values (begin_load.load, _queue.queue, begin_load.run_id, begin_load.kind)
    returning * into _load;
    if _load.kind = 'token' then
        return _target;
    end if;

    insert into pgcombine.spark_alive (load) values (_load.load);
    _stage := 'spark_stage_' || _load.number;
    select string_agg(case c.role
            when 'key' then format('%I %s%s not null', c.name, c.type, ' collate ' || c.collation)
            else format('%I %s%s default %L', c.name, c.type, ' collate ' || c.collation, k.initial) end, ', ' order by c.position)
    into _columns
    from pgcombine.queue_column c left join pgcombine.combiner k using (combiner)
    where c.queue = _queue.queue;
    execute format(
        'create unlogged table pgcombine.%I (%s, pgcombine_part integer, pgcombine_attempt xid8 not null default pg_current_xact_id())
         with (autovacuum_enabled = off)', _stage, _columns);
    execute format('grant select, insert on pgcombine.%I to %I', _stage, pgcombine.caller());
    return _stage;
end
$$;
