-- pgcombine_internal.bisect(queue, bucket, attempts [, time_limit])
--     → (updates, keys, changes, tries, quarantined, finished)
-- Searches for the failing keys in a bucket whose passes fail, combines other keys, and quarantines failing ones (see
-- close_search). The function serves queues without Python observers; for queues with such observers a worker calls
-- open_search, next_try, try_keys and close_search itself. Returns no row if open_search returns false. open_search
-- explains the parameters, close_search the results. Each try is a subtransaction.
-- Tables written: those of try_keys and close_search.
-- Errors: those of open_search and close_search; errors from the state of the server (see is_transient). After an error
-- nothing has changed.
create or replace function pgcombine_internal.bisect(queue text, bucket integer, attempts integer,
    time_limit interval default '10 s', out updates bigint, out keys bigint, out changes bigint, out tries bigint,
    out quarantined bigint, out finished boolean)
returns setof record
language plpgsql
as $$
declare
    _first integer;
    _last integer;
    _sqlstate text;
    _error text;
    _detail text;
    _hint text;
begin
    if not pgcombine_internal.open_search(bisect.queue, bisect.bucket, bisect.attempts, bisect.time_limit) then
        return;
    end if;
    loop
        select t.first, t.last into _first, _last
        from pgcombine_internal.next_try(bisect.changes, _sqlstate, _error) t;
        exit when _first is null;
        _sqlstate := null;
        _error := null;
        begin
            set constraints all deferred; -- the last try has made them immediate
            select t.changes into bisect.changes from pgcombine_internal.try_keys(_first, _last) t;
            set constraints all immediate;
        exception when query_canceled or assert_failure or others then
            get stacked diagnostics _sqlstate = returned_sqlstate, _error = message_text,
                _detail = pg_exception_detail, _hint = pg_exception_hint;
            if pgcombine_internal.is_transient(_sqlstate, _hint) then
                raise;
            end if;
            _error := _error || coalesce(' (' || nullif(_detail, '') || ')', '');
        end;
    end loop;
    return query select c.* from pgcombine_internal.close_search() c;
end
$$;
