-- pgcombine_internal.rebucket_feed(feed)
-- Records the present offset of a feed while its queue gets other buckets. No portion reaches beyond this offset, since
-- keys have changes in other buckets after it (see feed_bounds).
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
