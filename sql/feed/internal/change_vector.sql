-- pgcombine_internal.change_vector(queue) → jsonb
-- Returns the sequence of each bucket's last change, as of the caller's snapshot: {"0": 812, "1": 977}.
create or replace function pgcombine_internal.change_vector(queue text)
returns jsonb
language sql stable
as $$
    select coalesce(jsonb_object_agg(b.bucket, b.last), '{}') from pgcombine.change_bucket b
    where b.queue = change_vector.queue
$$;
