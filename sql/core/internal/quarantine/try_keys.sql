-- pgcombine_internal.try_keys(search [, observed]) → (changes, observe)
-- Tries the next keys of a search (see open_search). The caller rolls back to a savepoint afterwards.
--   observed  whether observers see the changes
--   changes   number of values changed
--   observe   see run_pass
-- Tables written, until the rollback: <queue>_values; those of the observers.
-- Errors: 54000 see refuse_bytes; those of combiners and observers.
create or replace function pgcombine_internal.try_keys(search jsonb, observed boolean default true,
    out changes bigint, out observe text[])
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(search ->> 'queue');
    _changes refcursor := 'pgcombine_changes';
    _updates bigint;
begin
    perform pgcombine_internal.refuse_bytes(_queue, null, format(
        'pg_temp.pgcombine_search where pgcombine_key between %s and %s', search -> 'first', search -> 'last'));
    open _changes no scroll for execute format('execute pgcombine_try%s (false, ''(0,0)'', ''(0,0)'', %s, %s)',
        case when not observed then '_unobserved' end, search -> 'first', search -> 'last');
    fetch _changes into _updates, _updates, changes;
    if observed and _queue.pass -> 'python' <> '[]' then
        observe := array(select jsonb_array_elements_text(_queue.pass -> 'python'));
    else
        close _changes;
        observe := '{}';
    end if;
end
$$;
