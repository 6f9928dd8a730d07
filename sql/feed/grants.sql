-- Every role may see the definitions of feeds. A role with any right on a queue sees the buckets and consumers of its
-- feeds. Passes raise the last sequences of the buckets.
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
