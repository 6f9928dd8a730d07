-- pgcombine_internal.claim_buckets(queue [, act, renew]) → pgcombine.queue
-- Claims all buckets of a queue until the transaction ends: passes under way end, and none begins. Returns the queue's
-- catalog row, read after the claim.
-- A statement that waits for a row's lock goes on with the rows that it saw before. So it would miss buckets that a
-- rebucket has added meanwhile. Every queue has bucket 0, which is claimed first. Nobody else can add or remove buckets
-- from then on, and the next statement sees them all.
--   act  what the caller does. Its name in the error if the isolation level isn't read committed: an older snapshot
--        would miss what was committed before the claim. Null: the caller bears that. Then 40001 is raised if the
--        buckets were changed since the snapshot
--   renew  whether the rows get new versions: a pass whose snapshot is older than this commit can't claim them (40001),
--        so none commits later that knows the former observers. Its worker runs it again
-- Tables written: bucket, if renew is set.
-- Errors: PC001 unknown queue; PC003 the isolation level isn't read committed; 42501 the caller may not claim buckets.
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
    if not found then
        -- raises if the queue was dropped during the wait
        perform pgcombine_internal.require_queue(claim_buckets.queue);
        raise insufficient_privilege
            using message = format('permission denied: %s may not claim the buckets of queue "%s"', current_user,
            claim_buckets.queue),
            hint = format('select pgcombine.grant_right(''operate'', %L, %L)', current_user, claim_buckets.queue);
    end if;
    perform from pgcombine.bucket b where b.queue = claim_buckets.queue order by b.bucket for update;
    if renew then
        update pgcombine.bucket b set bucket = b.bucket where b.queue = claim_buckets.queue;
    end if;
    return pgcombine_internal.require_queue(claim_buckets.queue);
end
$$;
