-- pgcombine.forget_failure(queue, bucket [, settled])
-- Forgets that passes over the bucket failed: the keys at fault are quarantined.
--   settled  whether all of them are. If not, but the search for them got on, the bucket is only due at once
-- Tables written: pgcombine.failure.
create or replace function pgcombine.forget_failure(queue text, bucket integer, settled boolean default true)
returns void
language plpgsql
as $$
begin
    if settled then
        delete from pgcombine.failure f where f.queue = forget_failure.queue and f.bucket = forget_failure.bucket;
    else
        update pgcombine.failure f set retry_at = clock_timestamp()
        where f.queue = forget_failure.queue and f.bucket = forget_failure.bucket;
    end if;
end
$$;
