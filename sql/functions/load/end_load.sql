-- pgcombine.end_load(load, queue, run_id [, attempts, expected, preaggregate]) → (updates, applied)
-- Ends a load, by whoever directs it: records the run and, if it is new, moves the rows of the winning attempts from
-- the stage to where they belong, in the calling transaction. It may be called again when it isn't known whether the
-- first call committed.
--   attempts      the attempts that succeeded; null: those that prepare_load named, else of each part the first one that
--                 committed
--   expected      how many rows these have written; null: as prepare_load says, else not known
--   preaggregate  fold the rows by key, with the queue's own combiners, and enqueue one update a key
-- Returns how many rows were added by the run, and whether by this call.
-- Tables written: <queue>_updates, or <queue>_values; pgcombine.spark_run, spark_load, spark_alive; drops the stage.
-- Errors: PC001 unknown queue; PC030 the load has ended without being applied; PC031 rows of it were lost. For a load
--         of values also PC003, PC005 (see begin_initialize).
create or replace function pgcombine.end_load(load uuid, queue text, run_id text, attempts xid8[] default null,
    expected bigint default null, preaggregate boolean default false, out updates bigint, out applied boolean)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _queue constant pgcombine.queue := pgcombine.require_queue(end_load.queue);
    _load pgcombine.spark_load;
    _staged text;
    _columns text;
    _keys text;
    _folds text;
    _found bigint;
begin
    applied := not pgcombine.run_applied(_queue.queue, end_load.run_id);
    if applied then
        insert into pgcombine.spark_run (queue, run_id, updates) values (_queue.queue, end_load.run_id, 0) on conflict do nothing;
        applied := found; -- else a rival, which this waited for, was faster
    end if;
    if not applied then
        select coalesce(max(r.updates), 0) into updates
        from pgcombine.spark_run r where r.queue = _queue.queue and r.run_id = end_load.run_id;
        perform pgcombine.give_up_load(end_load.load);
        return;
    end if;

    select l.* into _load from pgcombine.spark_load l
    where l.load = end_load.load and l.queue = _queue.queue and l.ended_at is null for update;
    if not found then
        raise exception 'the load of run "%" into queue "%" has ended without being applied', end_load.run_id, _queue.queue
            using errcode = 'PC030', hint = 'it was given up, or not heard of for so long that it was removed: run it again with the same run id';
    end if;
    attempts := coalesce(end_load.attempts, _load.attempts);
    expected := coalesce(end_load.expected, _load.expected);
    if _load.kind = 'token' then -- its updates are there
        updates := end_load.expected;
    else
        if not exists (select from pgcombine.spark_alive a where a.load = _load.load) then
            raise exception 'the server crashed during run "%" into queue "%", and lost what was staged', end_load.run_id, _queue.queue
                using errcode = 'PC031', hint = 'nothing was applied: run it again with the same run id';
        end if;
        select string_agg(format('%I', c.name), ', ' order by c.position),
               string_agg(format('%I', c.name), ', ' order by c.position) filter (where c.role = 'key'),
               string_agg(format('%s as %I', pgcombine.fold_expression(c), c.name), ', ' order by c.position) filter (where c.role = 'value')
        into _columns, _keys, _folds
        from pgcombine.queue_column c where c.queue = _queue.queue;
        _staged := format('(select %s from pgcombine.%I s where %s) as staged', _columns, 'spark_stage_' || _load.number,
            case when end_load.attempts is not null then 's.pgcombine_attempt = any ($1)'
                 else format('(s.pgcombine_part, s.pgcombine_attempt) in (
                     select f.pgcombine_part, min(f.pgcombine_attempt) from pgcombine.%I f group by f.pgcombine_part)',
                     'spark_stage_' || _load.number) end);
        if end_load.expected is not null and end_load.preaggregate then
            execute format('select count(*) from %s', _staged) into _found using end_load.attempts;
        end if;
        if _load.kind = 'values' then
            perform pgcombine.begin_initialize(_queue.queue);
            execute format('insert into pgcombine.%I (%s) select %2$s from %3$s', _queue.queue || '_values', _columns, _staged)
                using end_load.attempts;
        elsif end_load.preaggregate then
            perform pgcombine.refuse_fold(_queue.queue);
            execute format('insert into pgcombine.%I (%s) select %s, %s from %s group by %3$s', _queue.queue || '_updates',
                _columns, _keys, _folds, pgcombine.fold_source(_queue.queue, _staged)) using end_load.attempts;
        else
            execute format('insert into pgcombine.%I (%s) select %2$s from %3$s', _queue.queue || '_updates', _columns, _staged)
                using end_load.attempts;
        end if;
        get diagnostics updates = row_count;
        if coalesce(_found, updates) <> end_load.expected then
            raise exception 'run "%" into queue "%" wrote % rows, but % are staged', end_load.run_id, _queue.queue,
                end_load.expected, coalesce(_found, updates)
                using errcode = 'PC031', hint = 'nothing was applied: run it again with the same run id';
        end if;
        if _load.kind = 'values' then
            updates := updates - pgcombine.end_initialize(_queue.queue);
        end if;
    end if;
    update pgcombine.spark_run r set updates = end_load.updates where r.queue = _queue.queue and r.run_id = end_load.run_id;
    perform pgcombine.give_up_load(_load.load);
end
$$;
