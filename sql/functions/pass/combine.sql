-- pgcombine.combine(queue [, bucket]) → (bucket, updates, keys, changes, more)
-- One pass: claims the bucket, takes its pending updates, combines them with the values, writes, all in the
-- caller's transaction. No row: the bucket is busy (another pass has it) or the queue is paused.
--   bucket   the bucket, or null for the next one with pending updates
--   updates  how many pending updates there are fewer; keys: of how many keys; changes: how many keys' values changed
--   more     whether the bucket holds more pending updates than the pass took
-- Tables written: the bucket's updates and values; those that begin_pass writes.
-- Errors: those of begin_pass (PC008: the queue has functions in Python); 40001 as said there, and where observers
-- came or went meanwhile; whatever a combiner or an observer raises.
create or replace function pgcombine.combine(queue text, inout bucket integer default null,
    out updates bigint, out keys bigint, out changes bigint, out more boolean)
returns setof record
language plpgsql
as $$
declare
    _observed constant jsonb := pgcombine.observed(combine.queue);
    _pass record;
begin
    select p.* into _pass from pgcombine.begin_pass(combine.queue, combine.bucket) p;
    if not found then
        return;
    end if;
    combine.bucket := _pass.bucket;
    combine.more := _pass.more;
    if _pass.pending = 0 then -- nothing for observers, either
        updates := 0;
        keys := 0;
        changes := 0;
    else
        execute _pass.statement into updates, keys, changes;
    end if;
    if pgcombine.observed(combine.queue) is distinct from _observed then
        raise serialization_failure using message = format('observers of queue "%s" came or went during the pass', combine.queue),
            hint = 'run it again';
    end if;
    updates := updates + _pass.diverted;
    return next;
end
$$;
