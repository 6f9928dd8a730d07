-- pgcombine.isolate(queue, bucket, attempts [, patience]) → (updates, keys, changes, tries, quarantined, settled)
-- Passes over a bucket whose passes fail, a few keys at a time, and quarantines the keys that fail on their own: all
-- other keys are combined, however many fail. Everything happens in the caller's transaction. No row: the bucket is busy
-- or the queue is paused.
--   attempts   how many passes failed in a row
--   patience   for how long to go on, and not for longer than half of statement_timeout. It ends no sooner than one pass
--              succeeds or one key fails; and after a quarter of it if no value has changed and no key is to be quarantined
--   updates, keys, changes  as those of combine
--   tries      how many passes were tried, quarantined: how many keys were
--   settled    whether no pending key is left that wasn't tried, or that fails. If not, but something was combined or
--              quarantined, the bucket is due again at once
-- A pass takes twice as many keys as the one before, or half as many if that one failed: k keys at fault among n cost
-- about k log n passes. It names the rows that it takes, so that it reads no others. Each pass is a subtransaction.
-- The first pass takes 1024 keys, half as many for each attempt beyond quarantine_after: where the server cuts a search off,
-- since a few keys take too long together, the next one begins with fewer.
-- A key that fails is at fault if other keys pass. If none does, the cause may be common (an observer's table is gone),
-- and its updates wait; but a key is at fault in any case if combining it without observers raises an error of data, such
-- as an overflow, and no combiner is a function of the user's. One key that is all that fails goes by quarantine_key.
-- Tables written: as combine; failure; as quarantine_key.
-- Errors: those of begin_pass; 40001 as for combine. Another state of the server (see blameless) only ends the search.
create or replace function pgcombine.isolate(queue text, bucket integer, attempts integer, patience interval default '10 s',
    out updates bigint, out keys bigint, out changes bigint, out tries bigint, out quarantined bigint, out settled boolean)
returns setof record
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine.require_queue(isolate.queue);
    _observed constant jsonb := pgcombine.observed(_queue.queue);
    _timeout constant interval := (select nullif(s.setting::bigint, 0) * interval '1 ms' from pg_settings s where s.name = 'statement_timeout');
    _patience constant interval := least(isolate.patience, _timeout / 2);
    _began constant timestamptz := clock_timestamp();
    _own_data constant boolean := not exists (
        select from pgcombine.queue_column c join pgcombine.combiner k using (combiner)
        where c.queue = _queue.queue and (k.function is not null or k.combiner = 'python'));
    _hash constant text := pgcombine.key_hash(_queue.queue);
    _table text;
    _pass record;
    _pending bigint;
    _mask bigint;
    _slices bigint[]; -- of the hash of the bucket's keys, in random order
    _slice bigint;
    _seed constant bigint := (random() * 2 ^ 62)::bigint; -- the order of keys is another in each search
    _find text; -- the keys of a slice
    _statement text;
    _prepared boolean := false;
    _alone text; -- the same without observers
    _rows tid[]; -- the updates of a slice, key by key
    _ends bigint[]; -- for each key, the place of its last update in them
    _first integer; -- the keys that a pass takes
    _last integer;
    _size integer := 1024 >> least(10, greatest(0, isolate.attempts - _queue.quarantine_after));
    _done record;
    _sqlstate text;
    _error text;
    _detail text;
    _ended boolean := false;
    _suspects tid[] := '{}'; -- a row of each key that failed on its own
    _sqlstates text[] := '{}';
    _errors text[] := '{}';
    _proven integer[] := '{}';
begin
    select p.* into _pass from pgcombine.begin_pass(_queue.queue, isolate.bucket, mask => 0, slice => 0) p;
    if not found then
        return;
    end if;
    updates := _pass.diverted;
    keys := 0;
    changes := 0;
    tries := 0;
    quarantined := 0;

    _table := (pgcombine.bucket_tables(_queue.queue, isolate.bucket))[1];
    _statement := pgcombine.combine_sql(_queue.queue, isolate.bucket, 'where ctid = any ($1)', few => true);
    _alone := pgcombine.combine_sql(_queue.queue, isolate.bucket, 'where ctid = any ($1)', few => true, observed => false);
    -- keys, and not hashes alone: the hash function of a type may be poor
    select format(
        'with pending as materialized (
             select ctid as pgcombine_row, %1$s # $1 as pgcombine_hash, %2$s from %3$s %4$s
         )
         select array(select pgcombine_row from pending order by pgcombine_hash, %2$s),
                array(select (sum(count(*)) over (order by pgcombine_hash, %2$s))::bigint
                      from pending group by pgcombine_hash, %2$s order by pgcombine_hash, %2$s)',
        _hash, string_agg(format('%I', c.name), ', ' order by c.position), _table,
        pgcombine.not_quarantined(_queue.queue, concat_ws(' and ',
            pgcombine.plain_rows(_queue.queue) || format('%s & $2 = $3', _hash),
            nullif(pgcombine.bucket_slice(_queue.queue, isolate.bucket), ''))))
    into _find
    from pgcombine.queue_column c where c.queue = _queue.queue and c.role = 'key';
    if exists (select from pg_prepared_statements s where s.name = 'pgcombine_isolate') then -- an error has left it
        deallocate pgcombine_isolate;
    end if;
    -- what is known of the rows has to fit into memory
    execute format('select count(*) from %s', _table) into _pending;
    _mask := 2 ^ ceil(log(2, greatest(1, ceil(_pending / greatest(200000.0, _pending / 32.0))))) - 1;
    _slices := array(select n from generate_series(0, _mask) n order by random());

    foreach _slice in array _slices loop
        execute _find into _rows, _ends using _seed, _mask, _slice;
        _first := 1;
        while _first <= cardinality(_ends) loop
            if (updates > 0 or cardinality(_suspects) > 0) and clock_timestamp() > _began + (
                   case when changes > 0 or cardinality(_proven) > 0 then _patience else _patience / 4 end) then
                _ended := true;
                exit;
            end if;
            _last := least(cardinality(_ends), _first + _size - 1);
            while _last > _first and _ends[_last] - coalesce(_ends[_first - 1], 0) > _queue.pass_limit loop
                _last := (_first + _last) / 2;
            end loop;
            tries := tries + 1;
            begin
                set constraints all deferred; -- as they would be if it was a transaction of its own
                if not _prepared then -- once: to plan it takes longer than to run it for a few keys
                    execute 'prepare pgcombine_isolate (tid[]) as ' || _statement;
                    _prepared := true;
                end if;
                execute format('execute pgcombine_isolate (%L)', _rows[coalesce(_ends[_first - 1], 0) + 1 : _ends[_last]]) into _done;
                set constraints all immediate;
                updates := updates + _done.updates;
                keys := keys + _done.keys;
                changes := changes + _done.changes;
                _first := _last + 1;
                _size := least(2 * _size, 65536);
            exception when query_canceled or assert_failure or others then
                get stacked diagnostics _sqlstate = returned_sqlstate, _error = message_text, _detail = pg_exception_detail;
                if left(_sqlstate, 2) = '40' then
                    raise;
                elsif pgcombine.blameless(_sqlstate) then
                    _ended := true;
                    exit;
                elsif _last > _first then
                    _size := (_last - _first + 1) / 2;
                else
                    _suspects := _suspects || _rows[_ends[_first]];
                    _sqlstates := _sqlstates || _sqlstate;
                    _errors := _errors || (_error || coalesce(' (' || nullif(_detail, '') || ')', ''));
                    if _own_data and changes = 0 and _sqlstate ~ '^(22|23514$|54000$)' then
                        begin
                            execute _alone using _rows[coalesce(_ends[_first - 1], 0) + 1 : _ends[_first]];
                            raise transaction_rollback; -- it was the observers
                        exception
                            when transaction_rollback then
                                null;
                            when data_exception or check_violation or program_limit_exceeded then
                                _proven := _proven || cardinality(_suspects);
                        end;
                    end if;
                    _first := _first + 1;
                end if;
            end;
        end loop;
        exit when _ended;
    end loop;
    if _prepared then
        deallocate pgcombine_isolate;
    end if;
    if pgcombine.observed(_queue.queue) is distinct from _observed then
        raise serialization_failure using message = format('observers of queue "%s" came or went during the pass', _queue.queue),
            hint = 'run it again';
    end if;

    if changes > 0 then
        _proven := array(select n from generate_series(1, cardinality(_suspects)) n);
    end if;
    if cardinality(_suspects) = 1 and cardinality(_proven) = 0 and not _ended then
        execute format('select %s from %s where ctid = $1', _hash, _table) into _slice using _suspects[1];
        if pgcombine.quarantine_key(_queue.queue, isolate.bucket, _slice, isolate.attempts, _sqlstates[1], _errors[1], false) > 0 then
            quarantined := 1;
        end if;
    elsif cardinality(_proven) > 0 then
        perform pgcombine.hold_keys(_queue.queue, isolate.bucket, array_agg(_suspects[n]), isolate.attempts,
            array_agg(_sqlstates[n]), array_agg(_errors[n]))
        from unnest(_proven) n;
        perform pgcombine.divert(_queue.queue, isolate.bucket);
        quarantined := cardinality(_proven);
    end if;
    settled := not _ended and quarantined = cardinality(_suspects);
    if settled or updates > 0 or quarantined > 0 then
        perform pgcombine.forget_failure(_queue.queue, isolate.bucket, settled);
    end if;
    return next;
end
$$;
