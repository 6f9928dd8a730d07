-- Every role may see the definitions of feeds. Passes raise the last sequences of their queue's buckets. The functions
-- <feed>_read, <feed>_snapshot and commit_feed serve the readers of the queue with their owner's rights.
grant select on pgcombine.feed, pgcombine.feed_stat to public;
grant select, update (last) on pgcombine.feed_bucket to public;
drop policy if exists seen on pgcombine.feed_bucket;
create policy seen on pgcombine.feed_bucket for select using (pgcombine_internal.has_right(queue, 'use'));
drop policy if exists raised on pgcombine.feed_bucket;
create policy raised on pgcombine.feed_bucket for update using (pgcombine_internal.has_right(queue, 'work'))
    with check (pgcombine_internal.has_right(queue, 'work'));
grant select on pgcombine.feed_consumer to public;
drop policy if exists seen on pgcombine.feed_consumer;
create policy seen on pgcombine.feed_consumer for select using (exists (
    select from pgcombine.feed f where f.feed = feed_consumer.feed and pgcombine_internal.has_right(f.queue, 'use')));
