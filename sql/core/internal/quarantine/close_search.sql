-- pgcombine_internal.close_search() → (updates, keys, changes, tries, quarantined, finished)
-- Ends a search: quarantines the failing keys and writes the finished hash ranges to the journal.
-- A key that failed is quarantined if other keys passed and changed values, or if its failure is proven to be its own
-- (see next_try). Otherwise all keys may fail for a common reason, such as a dropped table of an observer. Then a key
-- is quarantined only if all keys were tried, it is the only one that failed, no other bucket of the queue fails, and
-- no other key is quarantined. A hash range with a failing key that isn't quarantined isn't written to the journal. The
-- values of its keys have not changed.
--   updates, keys  numbers of updates and keys that were combined, in hash ranges that were written to the journal
--   changes        number of values changed
--   tries          number of ranges tried
--   quarantined    number of keys quarantined
--   finished       whether all keys of the bucket with pending updates were tried, and each passed or is quarantined
-- Tables written: quarantined_key, <queue>_quarantine_keys, <queue>_quarantine; those of end_pass and forget_failure.
-- Errors: 40001 see end_pass, or the queue's definition changed during the search.
create or replace function pgcombine_internal.close_search(out updates bigint, out keys bigint, out changes bigint,
    out tries bigint, out quarantined bigint, out finished boolean)
language plpgsql
as $$
declare
    _state record;
    _plan pgcombine.plan;
    _queue pgcombine.queue;
    _all boolean; -- whether all keys were tried
    _common boolean; -- whether all keys may fail for a common reason
    _candidate record;
    _quarantined bigint;
    _range record;
begin
    select s.* into _state from pg_temp.pgcombine_search_state s;
    _plan := jsonb_populate_record(null::pgcombine.plan, _state.plan);
    _queue := pgcombine_internal.require_queue(_plan.queue);
    if _queue.pass is distinct from _state.definition then
        raise serialization_failure using hint = 'run the search again', message = format(
            'observers or conditions of queue "%s" changed during the search', _plan.queue);
    end if;
    _all := not exists (select from pg_temp.pgcombine_search s where s.pgcombine_key > _state.until);
    _common := _state.changes = 0 and (
        not _all or jsonb_array_length(_state.candidates) <> 1
        or exists (select from pgcombine.failure f where f.queue = _plan.queue and f.bucket <> _plan.bucket)
        or exists (select from pgcombine.quarantined_key k where k.queue = _plan.queue));
    changes := _state.changes;
    tries := _state.tries;
    quarantined := 0;
    for _candidate in
        select s.*
        from jsonb_to_recordset(_state.candidates) s (key integer, sqlstate text, error text, proven boolean)
        where s.proven or not _common
    loop
        execute format(
            'with one as (select * from pg_temp.pgcombine_search where pgcombine_key = $1 limit 1),
                  key as (insert into pgcombine.quarantined_key (queue, key, updates, attempts, sqlstate, error)
                          select $2, jsonb_build_object(%s), 0, $3, $4, $5 from one returning id as pgcombine_id),
                  quarantined as (insert into pgcombine.%I select %s, pgcombine_id from one, key)
             update pg_temp.pgcombine_search set pgcombine_quarantined = pgcombine_id from key
                 where pgcombine_key = $1',
            pgcombine_internal.column_list(_plan.queue, 'key', '{literal}, {name}'),
            _plan.queue || '_quarantine_keys', _queue.pass ->> 'keys')
        using _candidate.key, _plan.queue, _state.attempts, _candidate.sqlstate, _candidate.error;
        quarantined := quarantined + 1;
    end loop;

    delete from pg_temp.pgcombine_search s
    where s.pgcombine_key > _state.until
       or s.pgcombine_hash_range in (
           select o.pgcombine_hash_range from pg_temp.pgcombine_search o
           where o.pgcombine_key in (select (u ->> 'key')::integer from jsonb_array_elements(_state.candidates) u)
             and o.pgcombine_quarantined is null);
    execute pgcombine_internal.fill(
        'with quarantined as (
             insert into {quarantine} (pgcombine_key, {keys}, {new_values})
             select pgcombine_quarantined, {keys}, {new_values} from pg_temp.pgcombine_search
                 where pgcombine_quarantined is not null
             returning pgcombine_key
         ), counted as (
             update pgcombine.quarantined_key k set updates = k.updates + h.updates
             from (select pgcombine_key, count(*) as updates from quarantined group by pgcombine_key) h
             where k.id = h.pgcombine_key
         )
         select count(*) from quarantined', _queue.pass)
    into _quarantined;
    select count(*), count(distinct s.pgcombine_key) into updates, keys
    from pg_temp.pgcombine_search s where s.pgcombine_quarantined is null;

    finished := _all and quarantined = jsonb_array_length(_state.candidates);
    if finished then
        perform pgcombine_internal.end_pass(_queue, _plan, updates + _quarantined, keys, changes);
    else
        _plan.more := true;
        for _range in
            select s.pgcombine_range_mask as range_mask, s.pgcombine_hash_range as hash_range, count(*) as updates,
                   count(distinct s.pgcombine_key) as keys
            from pg_temp.pgcombine_search s group by 1, 2
        loop
            _plan.range_mask := _range.range_mask;
            _plan.hash_range := _range.hash_range;
            perform pgcombine_internal.end_pass(_queue, _plan, _range.updates, _range.keys, 0);
            _plan.pass := _plan.pass + 1;
        end loop;
    end if;
    finished := finished and not _plan.more;
    if finished or updates > 0 or quarantined > 0 then
        perform pgcombine_internal.forget_failure(_plan.queue, _plan.bucket, finished);
    end if;
    drop table pg_temp.pgcombine_search, pg_temp.pgcombine_search_state;
end
$$;
