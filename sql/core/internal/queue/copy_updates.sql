-- pgcombine_internal.copy_updates(queue, until)
-- Second step of rebucket: copies the pending updates with their ids to <queue>_updates_new, as many as possible before
-- it locks both tables of the queue, and the rest afterwards.
--   until  when to stop trying for the lock
-- Tables written: <queue>_updates_new, restoring.
-- Errors: PC006 the lock wasn't granted in time.
create or replace function pgcombine_internal.copy_updates(queue text, until timestamptz)
returns void
language plpgsql
as $$
declare
    _queue constant text := copy_updates.queue;
    _columns constant text := pgcombine_internal.column_list(_queue) || ', pgcombine_tx';
    _unseen text := ''; -- condition: the mark of the last round doesn't see the update
    _mark txid_snapshot;
    _locked boolean := false;
    _log record;
    _count bigint;
    _moved bigint;
    _round integer := 0;
    _next timestamptz := '-infinity';
    _attempt integer := 0;
begin
    insert into pgcombine.restoring default values;
    loop
        if _locked or clock_timestamp() >= _next then
            _mark := case when not _locked then pgcombine_internal.current_mark() end;
            _moved := 0;
            for _log in
                select l.tables, l.condition
                from pgcombine.bucket b cross join lateral pgcombine_internal.bucket_log(b.queue, b.bucket, _mark) l
                where b.queue = _queue
                order by b.bucket
            loop
                execute format('insert into pgcombine.%I (%s) select %2$s from %s', _queue || '_updates_new', _columns,
                    pgcombine_internal.log_sql(_queue, _log.tables, _log.condition || _unseen));
                get diagnostics _count = row_count;
                _moved := _moved + _count;
            end loop;
            exit when _locked;
            _unseen := format(' and (pgcombine_tx >= %s or pgcombine_tx = any (%L))', txid_snapshot_xmax(_mark),
                array(select txid_snapshot_xip(_mark)));
            _round := _round + 1;
            continue when _moved >= 10000 and _round < 5;
            _next := clock_timestamp() + interval '10 s';
        end if;
        _locked := pgcombine_internal.lock_tables(_queue, _attempt);
        perform pgcombine_internal.require(_locked or clock_timestamp() <= until, 'PC006',
            format('the tables of queue "%s" were in use all the time', _queue),
            'nothing was changed; look for long transactions in pg_stat_activity, or give more time');
        _attempt := _attempt + 1;
    end loop;
    delete from pgcombine.restoring r where r.tx = txid_current();
end
$$;
