-- pgcombine.fail_pass(queue, bucket, sqlstate, error) → (attempts, isolate)
-- Records that a pass over the bucket failed, after it was rolled back. All workers leave the bucket alone for a
-- while that grows from a fifth of a second to a minute (see due); a pass that takes all deletes the record.
--   attempts  how many passes failed in a row
--   isolate   whether it is time to look for the keys at fault: quarantine_after attempts, and an error that a
--             key can be the cause of
-- Tables written: pgcombine.failure.
-- Errors: PC001 unknown queue; 42501 the caller may not run passes over it.
create or replace function pgcombine.fail_pass(queue text, bucket integer, sqlstate text, error text,
    out attempts integer, out isolate boolean)
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine.require_queue(fail_pass.queue);
begin
    perform pgcombine.require_right(fail_pass.queue, 'work');
    insert into pgcombine.failure as f (queue, bucket, attempts, sqlstate, error, since, last, retry_at)
    values (_queue.queue, fail_pass.bucket, 1, fail_pass.sqlstate, fail_pass.error, clock_timestamp(), clock_timestamp(),
            clock_timestamp() + interval '0.2 s')
    on conflict on constraint failure_pkey do update
    set attempts = least(f.attempts, 1000000) + 1, sqlstate = excluded.sqlstate, error = excluded.error, last = excluded.last,
        retry_at = clock_timestamp() + least(60, 0.1 * 2 ^ least(f.attempts + 1, 20)) * (0.75 + random() / 2) * interval '1 s'
    returning f.attempts into fail_pass.attempts;
    isolate := fail_pass.attempts >= _queue.quarantine_after and not pgcombine.blameless(fail_pass.sqlstate);
exception when foreign_key_violation then
    perform pgcombine.require_queue(fail_pass.queue); -- dropped meanwhile: raises PC001
    raise;
end
$$;
