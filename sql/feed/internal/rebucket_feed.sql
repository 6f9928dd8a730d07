-- pgcombine_internal.rebucket_feed(feed)
-- Records the present offset of a feed while its queue gets other buckets, and adds missing buckets to the feed. A
-- portion that begins before this offset ends there at the latest, since the later changes of a key can be in another
-- bucket (see feed_bounds).
-- Tables written: feed, feed_bucket.
create or replace function pgcombine_internal.rebucket_feed(feed text)
returns void
language sql
as $$
    update pgcombine.feed f set turns = f.turns || pgcombine_internal.feed_vector(f.feed)
    where f.feed = rebucket_feed.feed;
    insert into pgcombine.feed_bucket (feed, bucket, queue, last)
    select f.feed, n, f.queue, f.number << 40
    from pgcombine.feed f join pgcombine.queue q using (queue) cross join generate_series(0, q.buckets - 1) n
    where f.feed = rebucket_feed.feed
    on conflict do nothing
$$;
