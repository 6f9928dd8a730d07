-- pgcombine_internal.end_load(load, queue, run_id [, attempts, expected, preaggregate, source, adds])
--     → (updates, applied)
-- Ends a load, in the calling transaction: if the run wasn't applied before, records it, and moves the rows of the
-- attempts that succeeded from the load's stage to the queue. If the answer to the commit is lost, call the function
-- again.
--   attempts      the attempts that succeeded, by transaction id; null: those that prepare_load named, otherwise each
--                 part's first attempt
--   expected      number of rows that these attempts wrote; null: the number given to prepare_load, otherwise unknown
--   preaggregate  whether to fold the rows by key, with the queue's combiners, into one update or value for each key
--   source        the source whose contribution the rows replace (see contribute); null: they are updates
--   adds          whether the rows add to the contribution of the stream's earlier batches instead
--   updates       number of updates or values that the run added
--   applied       whether this call added them
-- Tables written: <queue>_updates or <queue>_values; pgcombine.token, spark_load; those of contribute and give_up_load.
-- Errors: PC001 unknown queue; PC030 the load has ended without being applied, or belongs to another role; PC031 a
-- crash has emptied the stage, or the number of rows isn't the expected one; 42501 the caller lacks a right to insert;
-- those of begin_initialize, open_contributions and replace_contribution.
create or replace function pgcombine_internal.end_load(load uuid, queue text, run_id text, attempts xid8[] default null,
    expected bigint default null, preaggregate boolean default false, source text default null,
    adds boolean default false, out updates bigint, out applied boolean)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(queue);
    _load pgcombine.spark_load;
    _stream constant text := substring(run_id from '^stream:(.+):[0-9]{1,18}$');
    _role text;
    _values boolean;
    _stage text;
    _staged text;
    _keys constant text := pgcombine_internal.column_list(_queue.queue, 'key');
    _columns constant text := pgcombine_internal.column_list(_queue.queue);
    _found bigint; -- number of rows of the attempts in the stage; null: not counted
begin
    select l.* into _load from pgcombine.spark_load l
    where l.load = end_load.load and l.queue = _queue.queue for update;
    _role := coalesce(_load.role, current_user);
    perform pgcombine_internal.require_right(_queue.queue, 'work');
    applied := not pgcombine_internal.run_applied(_queue.queue, run_id, _role);
    if applied then
        insert into pgcombine.token (queue, role, token, updates) values (_queue.queue, _role, run_id, 0)
        on conflict do nothing;
        applied := found; -- false: another call has committed the row while this call waited for it
    end if;

    if not applied then
        select coalesce(max(r.updates), 0) into updates
        from pgcombine.token r where r.queue = _queue.queue and r.role = _role and r.token = run_id;
        perform pgcombine_internal.give_up_load(load);
        return;
    end if;

    perform pgcombine_internal.require(_load.load is not null and _load.ended_at is null, 'PC030',
        format('the load of run "%s" into queue "%s" has ended without being applied', run_id, _queue.queue),
        'it was given up, it belongs to another role, or it was removed after a long silence: run it again with the '
            'same run id');
    attempts := coalesce(attempts, _load.attempts);
    expected := coalesce(expected, _load.expected);
    perform pgcombine_internal.require(exists (select from pgcombine.spark_alive a where a.load = _load.load), 'PC031',
        format('the server crashed during run "%s" into queue "%s", and lost the rows in the stage', run_id,
            _queue.queue), 'nothing was applied: run it again with the same run id');
    _values := _load.kind = 'values';
    _stage := format('pgcombine.spark_stage_%s', _load.number);
    _staged := format('(select %s from %s s where %s) as staged', pgcombine_internal.column_list(_queue.queue), _stage,
        case when attempts is not null then format('s.pgcombine_attempt = any (%L::xid8[])', attempts)
             else format('(s.pgcombine_part, s.pgcombine_attempt) in (
                 select f.pgcombine_part, min(f.pgcombine_attempt) from %s f group by f.pgcombine_part)', _stage) end);
    if _values then
        perform pgcombine_internal.begin_initialize(_queue.queue);
    end if;

    if (preaggregate or source is not null) and expected is not null then
        execute format('select count(*) from %s', _staged) into _found;
    end if;
    if source is not null then
        perform pgcombine_internal.open_contributions(_queue.queue);
        updates := case when adds
            then pgcombine_internal.add_contribution(_queue.queue, source, _staged, _stream)
            else pgcombine_internal.replace_contribution(_queue.queue, source, _staged, stream => _stream) end;
    else
        execute format('insert into pgcombine.%I (%s) %s%s',
            _queue.queue || case when _values then '_values' else '_updates' end, _columns,
            case when preaggregate
                then format('select %s from %s group by %s', concat_ws(', ', _keys, pgcombine_internal.column_list(
                    _queue.queue, 'value', '{fold}')), pgcombine_internal.fold_source(_queue.queue, _staged), _keys)
                else format('select %s from %s', _columns, _staged) end,
            case when _values then ' order by ' || _keys end); -- in order, an index takes keys faster
        get diagnostics updates = row_count;
    end if;
    perform pgcombine_internal.require(coalesce(coalesce(_found, updates) = expected, true), 'PC031',
        format('run "%s" into queue "%s" wrote %s rows, but %s are staged', _load.run_id, _queue.queue, expected,
            coalesce(_found, updates)),
        'nothing was applied: run it again with the same run id');
    if _values then
        updates := updates - pgcombine_internal.end_initialize(_queue.queue);
    end if;

    update pgcombine.token r set updates = end_load.updates
    where r.queue = _queue.queue and r.role = _role and r.token = run_id;
    perform pgcombine_internal.give_up_load(_load.load);
end
$$;
