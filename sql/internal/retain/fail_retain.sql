-- pgcombine_internal.fail_retain(queue, bucket, sqlstate, error)
-- Records that a step of the search for expired keys failed and was rolled back, as a failure of the bucket (see
-- fail_pass). After a pause the step is tried again. Meanwhile passes go on: no key is quarantined, and the bucket stays
-- due. A step that was cancelled doesn't make passes smaller, so the SQLSTATE isn't kept then.
-- Tables written: pgcombine.failure, retention.
-- Errors: those of fail_pass.
create or replace function pgcombine_internal.fail_retain(queue text, bucket integer, sqlstate text, error text)
returns void
language sql
as $$
    select pgcombine_internal.fail_pass(fail_retain.queue, fail_retain.bucket, nullif(fail_retain.sqlstate, '57014'),
        'removing expired keys: ' || fail_retain.error);
    update pgcombine.failure f set retry_at = clock_timestamp() where (f.queue, f.bucket) = (fail_retain.queue, fail_retain.bucket);
    select pgcombine_internal.put_off_retain(fail_retain.queue, fail_retain.bucket);
$$;
