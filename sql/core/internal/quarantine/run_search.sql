-- pgcombine_internal.run_search(plan, attempts [, patience]) → (updates, keys, changes, tries, quarantined, settled)
-- Runs a planned pass that fails, a range of keys at a time, and quarantines the keys that fail by themselves (see
-- close_search).
--   attempts   number of passes that failed in a row
--   patience   duration of the search, at most half of statement_timeout. The search stops only at the end of a slice,
--              and not before some keys have passed or one has failed. It stops after a quarter of this time if no
--              value has changed
--   updates, keys, changes  see combine
--   tries      number of ranges tried
--   quarantined  number of keys quarantined
--   settled    whether no pending key is left that fails or wasn't tried
-- A try is a subtransaction over a copy of the updates. It takes twice as many keys as the try before, or half as many
-- if that failed. So k keys at fault among n cost about k log n tries. The first try takes 1024 keys, and half as many
-- for each attempt beyond quarantine_after: if the server cancels a search because a few keys take too long together,
-- the next one begins with fewer keys.
-- A key is at fault in any case if combining it without observers raises an error of data, such as an overflow, and no
-- combiner is a function of a user's.
-- Tables written: those of run_pass and close_search.
-- Errors: 40001 see run_pass, or observers were added or dropped during the search; 42501 the caller may not make
-- temporary tables; errors from the state of the server (see blameless, and a lack of locks), after which nothing is
-- done.
create or replace function pgcombine_internal.run_search(plan pgcombine.plan, attempts integer, patience interval default '10 s',
    out updates bigint, out keys bigint, out changes bigint, out tries bigint, out quarantined bigint, out settled boolean)
language plpgsql
as $$
declare
    _plan pgcombine.plan := run_search.plan;
    _observed constant jsonb := pgcombine_internal.observed(_plan.queue);
    _timeout constant interval := (select nullif(s.setting::bigint, 0) * interval '1 ms' from pg_settings s where s.name = 'statement_timeout');
    _patience constant interval := least(run_search.patience, _timeout / 2);
    _began constant timestamptz := clock_timestamp();
    _own_data constant boolean := not exists (
        select from pgcombine.queue_column c join pgcombine.combiner k using (combiner)
        where c.queue = _plan.queue and k.function is not null);
    _until integer := pgcombine_internal.open_search(_plan); -- number of the last key to try
    _ended boolean := false;
    _first integer := 1; -- number of the first key of a try
    _last integer;
    _size integer := 1024 >> least(10, greatest(0, run_search.attempts - (select q.quarantine_after from pgcombine.queue q where q.queue = _plan.queue)));
    _done record;
    _sqlstate text;
    _error text;
    _detail text;
    _hint text;
    _proven boolean;
    _suspects jsonb := '[]';
begin
    changes := 0;
    tries := 0;
    _plan.held := false; -- close_search quarantines at the end
    _plan.pending := 1;
    if exists (select from pg_prepared_statements s where s.name = 'pgcombine_search') then -- left by a search that failed
        deallocate pgcombine_search;
    end if;
    -- prepared, since for a few keys planning takes longer than running
    execute 'prepare pgcombine_search (integer, integer) as ' || pgcombine_internal.plan_sql(_plan, '', pgcombine_internal.search_source(_plan.queue, '$1', '$2'));
    while _first <= _until loop
        if not _ended and _first > 1
           and clock_timestamp() > _began + (
               case when changes > 0 or _suspects @> '[{"proven": true}]' then _patience else _patience / 4 end) then
            _ended := true;
            _until := pgcombine_internal.search_border(_first - 1);
            continue;
        end if;
        _last := least(_until, _first + _size - 1);
        tries := tries + 1;
        begin
            set constraints all deferred; -- as at the beginning of a transaction of its own
            perform pgcombine_internal.refuse_bytes(_plan, pgcombine_internal.search_source(_plan.queue, _first::text, _last::text));
            execute format('execute pgcombine_search (%s, %s)', _first, _last) into _done;
            set constraints all immediate;
            changes := changes + _done.changes;
            _first := _last + 1;
            _size := least(2 * _size, 65536);
        exception when query_canceled or assert_failure or others then
            get stacked diagnostics _sqlstate = returned_sqlstate, _error = message_text, _detail = pg_exception_detail, _hint = pg_exception_hint;
            if pgcombine_internal.blameless(_sqlstate) or _sqlstate = '53200' and _hint ~ 'max_\w+_per_' then -- of locks
                raise;
            elsif _last > _first then
                _size := (_last - _first + 1) / 2;
            else
                _proven := case when _own_data and changes = 0 then pgcombine_internal.fails_alone(_plan, _first, _sqlstate) else false end;
                _suspects := _suspects || jsonb_build_object('key', _first, 'sqlstate', _sqlstate, 'proven', _proven,
                    'error', _error || coalesce(' (' || nullif(_detail, '') || ')', ''));
                _first := _first + 1;
            end if;
        end;
    end loop;
    deallocate pgcombine_search;
    if pgcombine_internal.observed(_plan.queue) is distinct from _observed then
        raise serialization_failure using message = format('observers of queue "%s" came or went during the pass', _plan.queue),
            hint = 'run it again';
    end if;
    select c.updates, c.keys, c.quarantined, c.settled into run_search.updates, run_search.keys, run_search.quarantined, run_search.settled
    from pgcombine_internal.close_search(run_search.plan, _until, run_search.attempts, changes, _suspects) c;
end
$$;
