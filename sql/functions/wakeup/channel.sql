-- pgcombine.channel(queue [, bucket]) → text
-- NOTIFY channel of a bucket, and of all of a queue's buckets where the writer can't know which it touched.
create or replace function pgcombine.channel(queue text, bucket integer default null)
returns text
language sql immutable
as $$
    select 'pgcombine.' || queue || coalesce('.' || bucket, '')
$$;
