-- pgcombine.combine(queue [, bucket]) → (bucket, updates, keys, changes, more)
-- One pass: claims the bucket, takes its pending updates, combines them with the values, writes, all in the
-- caller's transaction. No row: the bucket is busy (another pass has it) or the queue is paused.
--   bucket   the bucket, or null for the next one with pending updates
--   updates  how many pending updates there are fewer; keys: of how many keys; changes: how many keys' values changed
--   more     whether the bucket holds more pending updates than the pass took
-- The claim comes first. Under read committed the pass's statement then sees all that was committed before the
-- claim. Under repeatable read the snapshot precedes the claim: had a rival pass committed in between, the
-- delete raises 40001, and the caller runs the pass again.
-- Tables written: the bucket's updates and values.
-- Errors: PC001 unknown queue; PC003 no such bucket; 40001 as said; whatever a combiner raises.
create or replace function pgcombine.combine(queue text, inout bucket integer default null,
    out updates bigint, out keys bigint, out changes bigint, out more boolean)
returns setof record
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine.require_queue(combine.queue);
    _statement text;
    _pending bigint;
    _claimed boolean := false; -- after a loop, found tells only whether it ran
begin
    if combine.bucket is null then
        for combine.bucket in select w.bucket from pgcombine.busy(_queue.queue) w order by random() loop
            perform from pgcombine.bucket b
            where b.queue = _queue.queue and b.bucket = combine.bucket for update skip locked;
            _claimed := found;
            exit when _claimed;
        end loop;
        if not _claimed then
            return;
        end if;
    elsif _queue.paused then
        return;
    else
        perform from pgcombine.bucket b
        where b.queue = _queue.queue and b.bucket = combine.bucket for update skip locked;
        if not found then
            if combine.bucket not between 0 and _queue.buckets - 1 then
                perform pgcombine.combine_sql(_queue.queue, combine.bucket); -- raises PC003
            end if;
            return;
        end if;
    end if;
    select p.statement, p.pending, p.more into _statement, _pending, combine.more
    from pgcombine.next_pass(_queue.queue, combine.bucket) p;
    if _pending < 1000 then
        select p.updates, p.keys, p.changes into combine.updates, combine.keys, combine.changes
        from pgcombine.run_few(_statement) p;
    else
        execute _statement into updates, keys, changes;
    end if;
    return next;
end
$$;
