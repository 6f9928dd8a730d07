-- pgcombine.isolate(queue, bucket, attempts [, patience]) → (updates, keys, changes, tries, quarantined, settled)
-- Claims a bucket whose passes fail, and runs the search for the keys at fault, in the caller's transaction: all others are
-- combined. No row: the bucket is busy or the queue is paused. Parameters, tables written, returned: as run_search.
-- Errors: those of claim_bucket, plan_pass and run_search.
create or replace function pgcombine.isolate(queue text, bucket integer, attempts integer, patience interval default '10 s',
    out updates bigint, out keys bigint, out changes bigint, out tries bigint, out quarantined bigint, out settled boolean)
returns setof record
language sql
as $$
    select s.*
    from pgcombine.claim_bucket(isolate.queue, isolate.bucket) b
    cross join lateral pgcombine.plan_pass(isolate.queue, b) p
    cross join lateral pgcombine.run_search(p, isolate.attempts, isolate.patience) s
    where b is not null
$$;
