-- pgcombine_internal.bisect(queue, bucket, attempts [, time_limit]) → (tries, changes, quarantined, progress)
-- Searches for the failing keys in a bucket whose passes fail, and quarantines them (see open_search, whose parameters
-- these are, and close_search, whose results these are). Returns no row if open_search returns null. Each try is a
-- subtransaction that is rolled back. Workers take the steps of the search themselves, so that they can run observers
-- in Python, and so that statement_timeout cancels a single try.
-- Tables written: those of close_search.
-- Errors: those of open_search; errors from the state of the server (see is_transient). After an error nothing has
-- changed.
create or replace function pgcombine_internal.bisect(queue text, bucket integer, attempts integer,
    time_limit interval default '10 s', out tries bigint, out changes bigint, out quarantined bigint,
    out progress boolean)
returns setof record
language plpgsql
as $$
declare
    _search jsonb := pgcombine_internal.open_search(bisect.queue, bisect.bucket, bisect.attempts, bisect.time_limit);
    _failed boolean;
    _changes bigint;
    _sqlstate text;
    _error text;
    _detail text;
    _hint text;
begin
    if _search is null then
        return;
    end if;
    while (_search -> 'first')::integer <= (_search -> 'count')::integer loop
        _failed := true;
        begin
            select t.changes into _changes from pgcombine_internal.try_keys(_search) t;
            set constraints all immediate; -- deferred constraints fail here, as they would at the commit
            _failed := false;
            raise transaction_rollback;
        exception when assert_failure or others then
            get stacked diagnostics _sqlstate = returned_sqlstate, _error = message_text,
                _detail = pg_exception_detail, _hint = pg_exception_hint;
            if _failed and pgcombine_internal.is_transient(_sqlstate, _hint) then
                raise;
            end if;
            _error := case when _failed then _error || coalesce(' (' || nullif(_detail, '') || ')', '') end;
        end;
        _search := pgcombine_internal.next_try(_search, _changes, _sqlstate, _error);
    end loop;
    return query select c.* from pgcombine_internal.close_search(_search) c;
end
$$;
