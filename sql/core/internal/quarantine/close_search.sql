-- pgcombine_internal.close_search(search) → (tries, changes, quarantined, progress)
-- Ends a search (see open_search): writes the failing keys to the list of quarantined keys.
-- A failing key is quarantined if a try has changed values of other keys, or if its failure is proven to be its own
-- (see next_try). Otherwise all keys may fail for a common reason, such as a dropped table of an observer. Then a key
-- is quarantined only if all keys were tried, it is the only one that failed, no other bucket of the queue fails, and
-- no other key is quarantined.
-- If no key failed alone, though several failed together, the next passes take fewer updates: as many as a try that
-- succeeded had keys. So they do if the search ended early, since most of them then lack the failing keys that are
-- left.
--   tries, changes  numbers of tries, and of values that tries have changed
--   quarantined     number of keys quarantined
--   progress        whether the next pass may succeed: keys were quarantined, or it takes fewer updates, or it takes
--                   updates of other keys than the failed pass. The bucket is then due at once
-- Tables written: quarantined_key, <queue>_quarantine_keys, failure.
create or replace function pgcombine_internal.close_search(search jsonb, out tries bigint, out changes bigint,
    out quarantined bigint, out progress boolean)
language plpgsql
as $$
declare
    _queue constant text := search ->> 'queue';
    _bucket constant integer := search ->> 'bucket';
    _most constant bigint := search ->> 'most';
    _common boolean; -- whether all keys may fail for a common reason
    _key record;
begin
    tries := search ->> 'tries';
    changes := search ->> 'changes';
    quarantined := 0;
    _common := changes = 0 and (
        (search -> 'ended')::boolean or (search -> 'failing')::integer <> 1
        or exists (select from pgcombine.failure f where f.queue = _queue and f.bucket <> _bucket)
        or exists (select from pgcombine.quarantined_key k where k.queue = _queue));
    for _key in select f.* from pg_temp.pgcombine_failing f where f.proven or not _common loop
        execute format(
            'with one as (select * from pg_temp.pgcombine_search where pgcombine_key = $1 limit 1),
                  key as (insert into pgcombine.quarantined_key (queue, key, updates, attempts, sqlstate, error)
                          select $2, jsonb_build_object(%s), 0, $3, $4, $5 from one returning id as pgcombine_id)
             insert into pgcombine.%I select %s, pgcombine_id from one, key',
            pgcombine_internal.column_list(_queue, 'key', '{literal}, {name}'), _queue || '_quarantine_keys',
            pgcombine_internal.column_list(_queue, 'key'))
        using _key.key, _queue, (search -> 'attempts')::integer, _key.sqlstate, _key.error;
        quarantined := quarantined + 1;
    end loop;
    drop table pg_temp.pgcombine_search, pg_temp.pgcombine_failing;

    update pgcombine.failure f
    set retry_at = clock_timestamp(),
        pass_limit = case when tries > 1 and (quarantined = 0 or (search -> 'ended')::boolean)
            then least(f.pass_limit, nullif(_most, 0)) else f.pass_limit end
    where f.queue = _queue and f.bucket = _bucket
      and (quarantined > 0 or (search -> 'failing')::integer = 0 and not (search -> 'ended')::boolean and _most > 0
           and case when tries = 1 then (search -> 'more')::boolean else (f.pass_limit > _most) is not false end);
    progress := found or quarantined > 0;
end
$$;
