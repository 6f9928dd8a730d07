-- pgcombine.forget_failure(queue, bucket)
-- Forgets that passes over the bucket failed: the keys at fault are quarantined.
-- Tables written: pgcombine.failure.
create or replace function pgcombine.forget_failure(queue text, bucket integer)
returns void
language sql
as $$
    delete from pgcombine.failure f where f.queue = forget_failure.queue and f.bucket = forget_failure.bucket
$$;
