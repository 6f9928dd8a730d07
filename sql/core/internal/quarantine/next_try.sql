-- pgcombine_internal.next_try(search [, changes, sqlstate, error, stop]) → search
-- Records the outcome of a search's try (see open_search), and says which keys to try next.
--   changes           number of values that the try has changed
--   sqlstate, error   why the try failed; error null: it succeeded
--   stop              whether to end the search now
-- If a try fails, the next one takes the first half of its keys. If that succeeds, the rest would fail, so the next try
-- takes the first half of the rest. So a failing key is found, if the keys don't fail only together. Then the search
-- goes on after it. Tries get larger as long as they succeed. No try takes as many keys as one that the server
-- cancelled. For example, if the sixth of eight keys fails, the tries take 1–8, 1–4, 5–6, 5, 6 and 7–8.
-- A key that failed alone is a failing key, unless the server cancelled the try. Its failure is proven to be its own if
-- no combiner is user-defined, and the key raises an error of data, of a check, of size or of memory, or an internal
-- error, even without observers. The function tests this only while no try has changed a value.
-- After the time limit the search ends as soon as a key has failed. If no try has changed a value and no failure is
-- proven, it ends after a quarter of the time limit, as soon as two keys have failed.
create or replace function pgcombine_internal.next_try(search jsonb, changes bigint default 0,
    sqlstate text default null, error text default null, stop boolean default false)
returns jsonb
language plpgsql
as $$
declare
    _first integer := search -> 'first';
    _count constant integer := search -> 'count';
    _tried constant integer := (search -> 'last')::integer - _first + 1;
    _bound integer := search ->> 'bound';
    _size integer := search -> 'size';
    _limit integer := search -> 'limit';
    _changes constant bigint := (search -> 'changes')::bigint
        + case when next_try.error is null then next_try.changes else 0 end;
    _failing integer := search -> 'failing';
    _proven boolean := false;
    _sure boolean;
    _ended boolean;
begin
    if next_try.error is null or _tried = 1 then
        if next_try.error is not null and next_try.sqlstate is distinct from '57014' then
            if _changes = 0 and next_try.sqlstate ~ '^(22|23514$|54|53200$|XX000$)'
               and not exists (select from pgcombine.queue_column c join pgcombine.combiner k using (combiner)
                               where c.queue = search ->> 'queue' and k.function is not null) then
                begin
                    perform pgcombine_internal.try_keys(search, observed => false);
                    raise transaction_rollback; -- the combiners accept the key, so the observers caused the error
                exception
                    when transaction_rollback then null;
                    when data_exception or check_violation or program_limit_exceeded then _proven := true;
                    when out_of_memory or internal_error then -- the key is the cause if the server still has memory
                        perform pg_catalog.length(pg_catalog.repeat('x', 16000000)); -- raises if it lacks memory
                        _proven := true;
                end;
            end if;
            insert into pg_temp.pgcombine_failing values (_first, next_try.sqlstate, next_try.error, _proven);
            _failing := _failing + 1;
        elsif _bound is null then
            _size := least(2 * _size, 65536);
        end if;
        _first := _first + _tried;
        if next_try.error is not null or _first > _bound then
            _bound := null;
        end if;
    elsif next_try.sqlstate = '57014' then
        _limit := _tried / 2;
    else
        if _bound is null then
            _size := _tried / 2;
        end if;
        _bound := _first + _tried - 1;
    end if;

    _proven := _proven or (search -> 'proven')::boolean;
    _sure := _changes > 0 or _proven;
    _ended := _first <= _count and (stop
        or clock_timestamp() > (search ->> 'began')::timestamptz
            + (search ->> 'time_limit')::interval / case when _sure then 1 else 4 end
        and _failing > case when _sure then 0 else 1 end);
    return search || jsonb_build_object('tries', (search -> 'tries')::bigint + 1, 'changes', _changes,
        'first', case when _ended then _count + 1 else _first end,
        'last', least(_count, _first - 1 + least(_limit, coalesce((_bound - _first + 2) / 2, _size))),
        'bound', _bound, 'size', _size, 'limit', _limit, 'failing', _failing, 'proven', _proven,
        'ended', _ended,
        'most', greatest((search -> 'most')::integer, case when next_try.error is null then _tried end));
end
$$;
