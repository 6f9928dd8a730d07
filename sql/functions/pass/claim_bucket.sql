-- pgcombine.claim_bucket(queue [, bucket]) → bucket
-- Claims a bucket until the transaction ends: nobody else passes over it. Null: another one has it, the queue is paused,
-- or nothing is pending where no bucket was given.
--   bucket  null: the next one with pending updates
-- Two passes from the same state can't both end, since their rows in the journal would have the same number. Where a
-- snapshot is so old that trim_journal may have deleted the other's row, nothing is claimed.
-- Errors: PC001 unknown queue; PC003 no such bucket; 40001 a snapshot of more than an hour ago; PC012 the database is a copy (see adopt); 42501 no right to run passes.
create or replace function pgcombine.claim_bucket(queue text, bucket integer default null)
returns integer
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine.require_queue(claim_bucket.queue);
    _bucket integer;
begin
    if clock_timestamp() - now() >= interval '1 hour' and current_setting('transaction_isolation') <> 'read committed' then
        raise serialization_failure using message = format('no pass over queue "%s" in a transaction of more than an hour', _queue.queue),
            detail = 'what others have combined since it began may not be written down any more', hint = 'begin a new one';
    end if;
    perform pgcombine.refuse_copied();
    if claim_bucket.bucket is null then
        for _bucket in select w.bucket from pgcombine.busy(_queue.queue) w order by random() loop
            perform from pgcombine.bucket b where b.queue = _queue.queue and b.bucket = _bucket for update skip locked;
            if found then
                return _bucket;
            end if;
        end loop;
    elsif not _queue.paused then
        perform from pgcombine.bucket b where b.queue = _queue.queue and b.bucket = claim_bucket.bucket for update skip locked;
        if found then
            return claim_bucket.bucket;
        end if;
        perform pgcombine.require(claim_bucket.bucket between 0 and _queue.buckets - 1, 'PC003',
            format('queue "%s" has no bucket %s', _queue.queue, claim_bucket.bucket), format('its buckets are 0 to %s', _queue.buckets - 1));
    end if;
    perform pgcombine.require_right(_queue.queue, 'work'); -- without it a claim finds nothing, either
    return null;
end
$$;
