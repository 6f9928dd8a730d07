-- pgcombine_internal.claim_buckets(queue [, act, renew]) → pgcombine.queue
-- Claims all buckets of a queue until the transaction ends: the call waits for passes in progress, and no pass begins.
-- Returns the queue's catalog row, read after the claim.
-- The function claims bucket 0 first, which every queue has. From then on nobody else can add or remove buckets. A
-- second statement claims the others, and sees buckets that a rebucket has added while the first one waited.
--   act    what the caller does, for the message of an error: the function then requires the isolation level read
--          committed, since an older snapshot would miss what was committed before the claim. Null: any level is
--          allowed, and the function raises 40001 if the buckets have changed since the snapshot
--   renew  whether to write new versions of the rows. A pass with an older snapshot then can't claim them (40001), and
--          its worker runs it again. add_observer and drop_observer set renew, so that no pass with the former
--          observers commits later
-- Tables written: bucket, if renew is set.
-- Errors: PC001 unknown queue; PC003 the isolation level isn't read committed; 40001 the buckets have changed since the
-- snapshot; 42501 the caller lacks the right to claim buckets.
create or replace function pgcombine_internal.claim_buckets(queue text, act text default null,
    renew boolean default false)
returns pgcombine.queue
language plpgsql
as $$
begin
    perform pgcombine_internal.require_queue(claim_buckets.queue);
    perform pgcombine_internal.require(act is null
        or current_setting('transaction_isolation') = 'read committed', 'PC003',
        format('%s of queue "%s" needs isolation level read committed', act, claim_buckets.queue),
        'begin transaction isolation level read committed');
    perform from pgcombine.bucket b where b.queue = claim_buckets.queue and b.bucket = 0 for update;
    perform from pgcombine.bucket b where b.queue = claim_buckets.queue order by b.bucket for update;
    if renew then
        update pgcombine.bucket b set bucket = b.bucket where b.queue = claim_buckets.queue;
    end if;
    return pgcombine_internal.require_queue(claim_buckets.queue);
end
$$;
