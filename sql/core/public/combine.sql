-- pgcombine.combine(queue [, bucket, mask, slice]) → (bucket, updates, keys, changes, more)
-- Runs one pass: claims a bucket, combines its pending updates with the values, writes the new values and a journal
-- row, all in the caller's transaction.
-- Returns no row if the bucket is claimed already, if the queue is paused, or if no bucket was given and none has
-- pending updates. Updates that the caller's transaction has enqueued stay pending, since they aren't committed.
--   bucket       null: the next one with pending updates
--   mask, slice  only keys with hash & mask = slice
--   updates      number of updates taken
--   keys         number of their keys
--   changes      number of keys whose values changed
--   more         whether updates of other keys may be pending: true for each slice that the caller names
-- The claim comes first. Under read committed the pass then sees all that was committed before it. Under repeatable
-- read the snapshot is older than the claim. If a rival pass has committed in between, the pass raises 40001, and the
-- caller runs it again.
-- Tables written: those of run_pass.
-- Errors: those of claim_bucket, plan_pass (PC008: the queue has observers in Python) and run_pass; 40001 observers
-- were added or dropped during the pass.
create or replace function pgcombine.combine(queue text, inout bucket integer default null, mask bigint default null, slice bigint default null,
    out updates bigint, out keys bigint, out changes bigint, out more boolean)
returns setof record
language plpgsql
as $$
declare
    _observed constant jsonb := pgcombine_internal.observed(combine.queue);
    _plan pgcombine.plan;
begin
    combine.bucket := pgcombine_internal.claim_bucket(combine.queue, combine.bucket);
    if combine.bucket is null then
        return;
    end if;
    _plan := pgcombine_internal.plan_pass(combine.queue, combine.bucket, combine.mask, combine.slice);
    select r.updates, r.keys, r.changes into combine.updates, combine.keys, combine.changes from pgcombine_internal.run_pass(_plan) r;
    combine.more := _plan.more;
    if pgcombine_internal.observed(combine.queue) is distinct from _observed then
        raise serialization_failure using message = format('observers of queue "%s" were added or dropped during the pass', combine.queue),
            hint = 'run the pass again';
    end if;
    return next;
end
$$;
