-- pgcombine_internal.channel(queue [, bucket]) → text
-- Returns the NOTIFY channel of a bucket or of a queue. Writers that don't know the bucket use the queue's.
create or replace function pgcombine_internal.channel(queue text, bucket integer default null)
returns text
language sql immutable
as $$
    select 'pgcombine.' || queue || coalesce('.' || bucket, '')
$$;
