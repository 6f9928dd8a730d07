-- pgcombine_internal.put_off_retain(queue, bucket [, page, pause])
-- Notes where the search for expired keys of a bucket goes on, and when.
--   page   null: where it was
--   pause  time until then. Its default is the pause after a failure
-- Tables written: retention.
create or replace function pgcombine_internal.put_off_retain(queue text, bucket integer, page bigint default null, pause interval default '10 s')
returns void
language sql
as $$
    insert into pgcombine.retention as r (queue, bucket, page, due)
    values (put_off_retain.queue, put_off_retain.bucket, coalesce(put_off_retain.page, 0), clock_timestamp() + put_off_retain.pause)
    on conflict on constraint retention_pkey do update
    set page = coalesce(put_off_retain.page, r.page), due = excluded.due
$$;
