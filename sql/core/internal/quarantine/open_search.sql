-- pgcombine_internal.open_search(queue, bucket, attempts [, time_limit, observers, arrived]) → jsonb
-- Begins a search for the failing keys of a bucket, in the caller's transaction: claims the bucket, plans a pass,
-- copies its updates to the temporary table pgcombine_search, and numbers their keys in random order (pgcombine_key).
-- A try is the statement of the pass over some of these keys. try_keys runs it, and the caller rolls it back to a
-- savepoint, whether it has failed or not. next_try records the outcome, and close_search writes the failing keys to
-- the list of quarantined keys. So a search combines nothing: the next pass does.
-- The temporary table pgcombine_failing has the keys that failed alone, why, and whether the failure is proven to be
-- the key's own (see next_try).
-- Returns the search, or null if the bucket is claimed already, or if the queue is paused.
--   attempts    number of passes that failed in a row
--   time_limit  see next_try
--   observers   Python observers that the caller can run
--   arrived     see run_pass
-- Of the search, an object that each step takes and returns:
--   first, last  the first and the last key to try next; first greater than count: the search has ended
--   count        number of keys
--   bound        null, or a try from key first to this one would fail
--   size, limit  number of keys to try next if bound is null; the largest number of keys in a try
--   failing, proven  number of rows of pgcombine_failing; whether a failure is proven
--   more         whether the pass leaves updates of other keys pending
--   most         the largest number of keys in a try that succeeded
--   tries, changes, ended  numbers of tries and of values changed by them; whether the search ended early
-- The isolation level must be read committed. Then the search sees all that was committed before the claim, and no
-- other pass runs until the transaction ends.
-- Errors: those of claim_bucket and plan_pass; 42501 the caller lacks the right to create temporary tables.
create or replace function pgcombine_internal.open_search(queue text, bucket integer, attempts integer,
    time_limit interval default '10 s', observers text[] default '{}', arrived boolean default false)
returns jsonb
language plpgsql
as $$
declare
    _queue pgcombine.queue;
    _plan pgcombine.plan;
    _count bigint;
    _name text;
begin
    if pgcombine_internal.claim_bucket(open_search.queue, open_search.bucket) is null then
        return null;
    end if;
    _queue := pgcombine_internal.require_queue(open_search.queue);
    _plan := pgcombine_internal.plan_pass(_queue, open_search.bucket, open_search.observers);
    execute (
        select pgcombine_internal.fill(
            'create temporary table pgcombine_search on commit drop as
             select {keys}, {new_values},
                    (dense_rank() over (order by {hash} # {order}, {keys}))::integer as pgcombine_key
             from {updates} where {hash} & {range_mask} = {hash_range}
                 and not exists (select from {quarantined_keys} where {key_is_quarantined})',
            _queue.pass || to_jsonb(_plan) || jsonb_build_object('order', floor(random() * 2 ^ 62)::bigint,
                'updates', pgcombine_internal.log_sql(_queue.queue, l.tables, l.condition)))
        from pgcombine_internal.bucket_log(_queue.queue, _plan.bucket, _plan.mark) l);
    create index on pg_temp.pgcombine_search (pgcombine_key);
    create temporary table pgcombine_failing (key integer, sqlstate text, error text, proven boolean) on commit drop;
    select coalesce(max(s.pgcombine_key), 0) into _count from pg_temp.pgcombine_search s;
    foreach _name in array '{pgcombine_try, pgcombine_try_unobserved}'::text[] loop
        if exists (select from pg_prepared_statements p where p.name = _name) then
            execute format('deallocate %I', _name);
        end if;
        _queue.statement := pgcombine_internal.pass_template(_queue.queue,
            format('select %s, %s from pg_temp.pgcombine_search where pgcombine_key between $4 and $5',
                _queue.pass ->> 'keys', _queue.pass ->> 'new_values'), _name = 'pgcombine_try');
        execute format('prepare %I (boolean, tid, tid, integer, integer) as %s', _name,
            pgcombine_internal.pass_sql(_queue, _plan.bucket)
                || case when _name = 'pgcombine_try' and _queue.pass -> 'python' <> '[]'
                    then pgcombine_internal.python_sql(_queue, open_search.arrived) else '' end);
    end loop;
    return jsonb_build_object('queue', _plan.queue, 'bucket', _plan.bucket, 'attempts', open_search.attempts,
        'began', clock_timestamp(), 'time_limit', open_search.time_limit, 'first', 1, 'last', least(1024, _count),
        'count', _count, 'bound', null, 'size', 1024, 'limit', 65536, 'failing', 0, 'proven', false,
        'more', _plan.more, 'most', 0, 'tries', 0, 'changes', 0, 'ended', false);
end
$$;
