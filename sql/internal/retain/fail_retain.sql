-- pgcombine_internal.fail_retain(queue, bucket, sqlstate, error)
-- Records that a step of the search for expired keys failed and was rolled back, as a failure of the bucket (see
-- fail_pass). The step is tried again after a pause, at the same pages. Passes go on, and no key is quarantined.
-- Tables written: pgcombine.failure, retention.
-- Errors: those of fail_pass.
create or replace function pgcombine_internal.fail_retain(queue text, bucket integer, sqlstate text, error text)
returns void
language sql
as $$
    select pgcombine_internal.fail_pass(fail_retain.queue, fail_retain.bucket, fail_retain.sqlstate, fail_retain.error);
    select pgcombine_internal.put_off_retain(fail_retain.queue, fail_retain.bucket);
$$;
