-- pgcombine_internal.claim_bucket(queue [, bucket]) → bucket
-- Claims a bucket until the transaction ends: no other pass runs over it. Returns null if the bucket is claimed
-- already, if the queue is paused, or if no bucket was given and no unclaimed one has pending updates.
--   bucket  null: a random one of the unclaimed buckets with pending updates
-- Two passes from the same state can't both commit, since their journal rows would have the same number. trim_journal
-- may delete the first pass's row after an hour. So a transaction whose snapshot is an hour old can't claim a bucket.
-- Errors: PC001 unknown queue; PC003 no such bucket; 40001 the snapshot is older than an hour, or than the last change
-- of the bucket's row (see claim_buckets and rebucket); PC012 the database is a copy (see post_restore); 42501 the
-- caller lacks the right work.
create or replace function pgcombine_internal.claim_bucket(queue text, bucket integer default null)
returns integer
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(claim_bucket.queue);
    _bucket integer;
begin
    if clock_timestamp() - now() >= interval '1 hour'
        and current_setting('transaction_isolation') <> 'read committed' then
        raise serialization_failure
            using message = format('a transaction that is more than an hour old can''t run a pass over queue "%s"',
            _queue.queue),
            detail = 'the records of passes that have run since it began may be deleted by now',
            hint = 'begin a new transaction';
    end if;
    perform pgcombine_internal.refuse_copied();
    if claim_bucket.bucket is null then
        for _bucket in select w.bucket from pgcombine_internal.busy(_queue.queue) w order by random() loop
            perform from pgcombine.bucket b where b.queue = _queue.queue and b.bucket = _bucket for update skip locked;
            if found then
                return _bucket;
            end if;
        end loop;
    elsif not _queue.paused then
        perform from pgcombine.bucket b where b.queue = _queue.queue
            and b.bucket = claim_bucket.bucket for update skip locked;
        if found then
            return claim_bucket.bucket;
        end if;
        if claim_bucket.bucket not between 0 and _queue.buckets - 1 then
            raise exception 'queue "%" has no bucket %', _queue.queue, claim_bucket.bucket
                using errcode = 'PC003', hint = format('its buckets are 0 to %s', _queue.buckets - 1);
        end if;
    end if;
    -- without this right the claim finds no row, as if the bucket were claimed already
    perform pgcombine_internal.require_right(_queue.queue, 'work');
    return null;
end
$$;
