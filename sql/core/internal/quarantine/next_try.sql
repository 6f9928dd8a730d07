-- pgcombine_internal.next_try([changes, sqlstate, error, stop]) → (first, last)
-- Records the outcome of a search's last try, if there was one, and returns the range of keys to try next; null: the
-- search has ended.
--   changes          number of values that the try has changed
--   sqlstate, error  why the try failed; error null: it succeeded
--   stop             whether to end the search soon
-- A try takes twice as many keys as the try before (at most 65536), or half as many if that failed. A key that fails
-- alone is a candidate. Its failure is proven to be its own if no combiner is user-defined, and the key raises an error
-- of data, of a check, of size or of memory, or an internal error, even without observers. The function tests this only
-- while no value has changed. The search stops early after its time limit, or if stop is true, but only at the end of a
-- hash range, and once some keys have passed or one has failed. If no value has changed and no failure is proven, a
-- quarter of the time limit applies.
create or replace function pgcombine_internal.next_try(changes bigint default 0, sqlstate text default null,
    error text default null, stop boolean default false, out first integer, out last integer)
language plpgsql
as $$
declare
    _state record;
    _proven boolean := false;
begin
    select s.* into _state from pg_temp.pgcombine_search_state s;
    first := _state.first;
    if _state.last is null then
        null; -- nothing was tried yet
    elsif next_try.error is null then
        first := _state.last + 1;
        _state.size := least(2 * _state.size, 65536);
        _state.changes := _state.changes + next_try.changes;
    elsif _state.last > first then
        _state.size := (_state.last - first + 1) / 2;
    else
        if _state.changes = 0 and next_try.sqlstate ~ '^(22|23514$|54|53200$|XX000$)' and not exists (
            select from pgcombine.queue_column c join pgcombine.combiner k using (combiner)
            where c.queue = _state.plan ->> 'queue' and k.function is not null)
        then
            begin
                perform pgcombine_internal.try_keys(first, first, observed => false);
                raise transaction_rollback; -- the combiners accept the key, so the observers caused the error
            exception
                when transaction_rollback then null;
                when data_exception or check_violation or program_limit_exceeded then _proven := true;
                when out_of_memory or internal_error then -- the key is the cause if the server still has memory
                    perform pg_catalog.length(pg_catalog.repeat('x', 16000000)); -- raises if the server lacks memory
                    _proven := true;
            end;
        end if;
        _state.candidates := _state.candidates
            || jsonb_build_object('key', first, 'sqlstate', next_try.sqlstate, 'error', next_try.error,
                'proven', _proven);
        first := first + 1;
    end if;
    if not _state.ended and first > 1 and (stop or clock_timestamp() > _state.began
            + _state.time_limit
              / case when _state.changes > 0 or _state.candidates @> '[{"proven": true}]' then 1 else 4 end)
    then
        _state.ended := true;
        select max(s.pgcombine_key) into _state.until from pg_temp.pgcombine_search s
        where s.pgcombine_hash_range = (
            select k.pgcombine_hash_range from pg_temp.pgcombine_search k
            where k.pgcombine_key = next_try.first - 1 limit 1);
    end if;
    last := least(_state.until, first + _state.size - 1);
    update pg_temp.pgcombine_search_state s
    set (first, last, until, size, ended, changes, tries, candidates)
        = (next_try.first, next_try.last, _state.until, _state.size, _state.ended, _state.changes,
           s.tries + case when next_try.first > _state.until then 0 else 1 end, _state.candidates);
    if first > _state.until then
        select null, null into first, last;
    end if;
end
$$;
