-- pgcombine.combine(queue [, bucket, mask, slice]) → (bucket, updates, keys, changes, more)
-- One pass: claims the bucket, combines its pending updates with the values, writes these and a row of the journal, all in
-- the caller's transaction. No row: the bucket is busy (another pass has it), nothing is pending where no bucket was given,
-- or the queue is paused. What the transaction itself has enqueued stays pending: it isn't committed before the pass.
--   bucket   the bucket, or null for the next one with pending updates; mask, slice: only keys whose hash & mask = slice
--   updates  how many updates were taken; keys: of how many keys; changes: how many keys' values changed
--   more     whether updates of other keys are pending
-- The claim comes first. Under read committed the pass then sees all that was committed before. Under repeatable read the
-- snapshot precedes the claim: had a rival pass committed in between, the pass raises 40001, and the caller runs it again.
-- Errors: those of claim_bucket, plan_pass (PC008: the queue has functions in Python) and run_pass, which writes.
create or replace function pgcombine.combine(queue text, inout bucket integer default null, mask bigint default null, slice bigint default null,
    out updates bigint, out keys bigint, out changes bigint, out more boolean)
returns setof record
language plpgsql
as $$
declare
    _observed constant jsonb := pgcombine.observed(combine.queue);
    _plan pgcombine.plan;
begin
    combine.bucket := pgcombine.claim_bucket(combine.queue, combine.bucket);
    if combine.bucket is null then
        return;
    end if;
    _plan := pgcombine.plan_pass(combine.queue, combine.bucket, combine.mask, combine.slice);
    select r.updates, r.keys, r.changes into combine.updates, combine.keys, combine.changes from pgcombine.run_pass(_plan) r;
    combine.more := _plan.more;
    if pgcombine.observed(combine.queue) is distinct from _observed then
        raise serialization_failure using message = format('observers of queue "%s" came or went during the pass', combine.queue),
            hint = 'run it again';
    end if;
    return next;
end
$$;
