-- pgcombine_internal.feed_vector(feed) → jsonb
-- Returns the last sequence of each bucket of a feed, as of the caller's snapshot: {"0": 812, "1": 977}.
create or replace function pgcombine_internal.feed_vector(feed text)
returns jsonb
language sql stable
as $$
    select coalesce(jsonb_object_agg(b.bucket, b.last), '{}') from pgcombine.feed_bucket b
    where b.feed = feed_vector.feed
$$;
