-- pgcombine_internal.try_keys(first, last [, observed, arrived]) → (changes, observe)
-- Combines a range of keys of a search. If that fails, the caller rolls back to a savepoint and passes the error to
-- next_try.
--   observed  whether observers see the changes
--   arrived   see run_pass
--   changes   number of values changed
--   observe   see run_pass
-- Tables written: <queue>_values; those of the observers.
-- Errors: 54000 see refuse_bytes; those of combiners and observers.
create or replace function pgcombine_internal.try_keys(first integer, last integer, observed boolean default true,
    arrived boolean default false, out changes bigint, out observe text[])
language plpgsql
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
declare
    _plan constant pgcombine.plan := (
        select jsonb_populate_record(null::pgcombine.plan, s.plan) from pg_temp.pgcombine_search_state s);
    _queue pgcombine.queue := pgcombine_internal.require_queue(_plan.queue);
    _source constant text := format(
        'select %s, %s from pg_temp.pgcombine_search where pgcombine_quarantined is null and pgcombine_key between ',
        _queue.pass ->> 'keys', _queue.pass ->> 'new_values');
    _page constant tid := '(0,0)'; -- $2 and $3 are equal: no expired keys are removed
    _changes refcursor := 'pgcombine_changes';
    _updates bigint;
    _keys bigint;
begin
    perform pgcombine_internal.refuse_bytes(_queue, _plan,
        '(' || _source || try_keys.first || ' and ' || try_keys.last || ') as updates');
    if observed and _queue.pass -> 'python' <> '[]' then
        _queue.statements := array[pgcombine_internal.pass_template(_queue.queue, true, _source || '$4 and $5')];
        open _changes no scroll for execute pgcombine_internal.pass_sql(_queue, _plan.bucket, true)
                || pgcombine_internal.python_sql(_queue, try_keys.arrived)
            using false, _page, _page, try_keys.first, try_keys.last;
        fetch _changes into _updates, _keys, changes;
        if changes > 0 or arrived and _keys > 0 then
            observe := array(select jsonb_array_elements_text(_queue.pass -> 'python'));
        else
            close _changes;
        end if;
    else
        execute format('execute %I (false, %L, %L, %s, %s)',
            pgcombine_internal.prepare_pass(_queue, _plan.bucket, _source || '$4 and $5', try_keys.observed),
            _page, _page, try_keys.first, try_keys.last)
        into _updates, _keys, changes;
    end if;
    observe := coalesce(observe, '{}');
end
$$;
