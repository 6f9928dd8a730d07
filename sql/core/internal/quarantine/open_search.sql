-- pgcombine_internal.open_search(queue, bucket, attempts [, time_limit, observers]) → boolean
-- Begins a search for the failing keys of a bucket, in the caller's transaction: claims the bucket, plans a pass,
-- copies its updates and numbers their keys. next_try says which keys to try, try_keys combines them, and close_search
-- ends the search. Returns false if the bucket is claimed already, or if the queue is paused.
--   attempts    number of passes that failed in a row. The first try takes 1024 keys, and half as many for each attempt
--               beyond quarantine_after, since the server may cancel a try of many keys
--   time_limit  duration of the search, at most half of statement_timeout (see next_try)
--   observers   see plan_pass
-- The function creates the temporary tables pgcombine_search_state, with one row, and pgcombine_search. The latter has
-- the queue's columns and
--   pgcombine_key          the number of the key in this search, from 1
--   pgcombine_hash_range   the key's hash range, by pgcombine_range_mask. The keys of a hash range have consecutive
--                          numbers; the order of the hash ranges differs in each search
--   pgcombine_quarantined  null: the key isn't quarantined. Otherwise its number in <queue>_quarantine_keys
-- The hash ranges are small: if a key fails and isn't quarantined, close_search leaves the updates of the key's whole
-- hash range pending.
-- Errors: those of claim_bucket and plan_pass; 42501 the caller lacks the right to create temporary tables.
create or replace function pgcombine_internal.open_search(queue text, bucket integer, attempts integer,
    time_limit interval default '10 s', observers text[] default '{}')
returns boolean
language plpgsql
as $$
declare
    _queue pgcombine.queue;
    _plan pgcombine.plan;
    _updates text;
    _mask bigint;
    _timeout constant interval := (
        select nullif(s.setting::bigint, 0) * interval '1 ms' from pg_settings s where s.name = 'statement_timeout');
begin
    if pgcombine_internal.claim_bucket(open_search.queue, open_search.bucket) is null then
        return false;
    end if;
    _queue := pgcombine_internal.require_queue(open_search.queue);
    _plan := pgcombine_internal.plan_pass(_queue, open_search.bucket, open_search.observers);
    perform pgcombine_internal.require(has_database_privilege(current_database(), 'temporary'), '42501',
        format('role "%s" may not create temporary tables in database "%s", but searches for failing keys need them',
            current_user, current_database()),
        format('grant temporary on database %I to %I', current_database(), current_user));
    if to_regclass('pg_temp.pgcombine_search') is not null then -- left by another search in this transaction
        drop table pg_temp.pgcombine_search, pg_temp.pgcombine_search_state;
    end if;
    select pgcombine_internal.log_sql(_queue.queue, l.tables,
        format('%s & %s = %s and %s', _queue.pass ->> 'hash', _plan.range_mask, _plan.hash_range, l.condition))
    into _updates
    from pgcombine_internal.bucket_log(_queue.queue, _plan.bucket, _plan.mark) l;
    if coalesce(_plan.pending, 1000) = 1000 then -- these values stand for uncounted updates
        execute 'select count(*) from ' || _updates into _plan.pending;
    end if;
    _mask := greatest(_plan.range_mask, least(1023,
        (_plan.range_mask + 1) * 2 ^ ceil(log(2, greatest(1, _plan.pending / 8.0))) - 1));
    -- numbered by key as well as by hash: keys may share a hash if their type's hash function is poor
    execute pgcombine_internal.fill(
        'create temporary table pgcombine_search on commit drop as
         select {keys}, {new_values}, pgcombine_quarantined, pgcombine_hash & {range_mask} as pgcombine_hash_range,
                {range_mask}::bigint as pgcombine_range_mask,
                (dense_rank() over (order by pgcombine_hash & {range_mask} # {order}, pgcombine_hash, {keys}))::integer
                    as pgcombine_key
         from (select updates.*, {hash} as pgcombine_hash, pgcombine_quarantined.pgcombine_key as pgcombine_quarantined
               from {updates} left
                   join {quarantined_keys} on {key_is_quarantined}) as updates',
        _queue.pass || jsonb_build_object(
            'range_mask', _mask, 'order', floor(random() * (_mask + 1))::bigint, 'updates', _updates));
    create index on pg_temp.pgcombine_search (pgcombine_key);
    create temporary table pgcombine_search_state on commit drop as
        select to_jsonb(_plan) as plan, _queue.pass as definition, open_search.attempts, clock_timestamp() as began,
               least(open_search.time_limit, _timeout / 2) as time_limit,
               1 as first, null::integer as last,
               coalesce((select max(s.pgcombine_key) from pg_temp.pgcombine_search s), 0) as until,
               1024 >> least(10, greatest(0, open_search.attempts - _queue.quarantine_after)) as size,
               false as ended, 0::bigint as changes, 0::bigint as tries, '[]'::jsonb as candidates;
    return true;
end
$$;
