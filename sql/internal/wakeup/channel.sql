-- pgcombine_internal.channel(queue [, bucket]) → text
-- Returns the NOTIFY channel of a bucket, or of a queue, on which writers notify that don't know the bucket.
create or replace function pgcombine_internal.channel(queue text, bucket integer default null)
returns text
language sql immutable
as $$
    select 'pgcombine.' || queue || coalesce('.' || bucket, '')
$$;
