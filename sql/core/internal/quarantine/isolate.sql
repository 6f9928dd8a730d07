-- pgcombine_internal.isolate(queue, bucket, attempts [, patience]) → (updates, keys, changes, tries, quarantined, settled)
-- Claims a bucket whose passes fail and searches for the keys at fault, in the caller's transaction; all other keys are
-- combined. No row: the bucket is claimed already, or the queue is paused. run_search explains parameters and results.
-- Tables written: those of run_search.
-- Errors: those of claim_bucket, plan_pass and run_search.
create or replace function pgcombine_internal.isolate(queue text, bucket integer, attempts integer, patience interval default '10 s',
    out updates bigint, out keys bigint, out changes bigint, out tries bigint, out quarantined bigint, out settled boolean)
returns setof record
language sql
as $$
    select s.*
    from pgcombine_internal.claim_bucket(isolate.queue, isolate.bucket) b
    cross join lateral pgcombine_internal.plan_pass(isolate.queue, b) p
    cross join lateral pgcombine_internal.run_search(p, isolate.attempts, isolate.patience) s
    where b is not null
$$;
