-- pgcombine.feed_stat
-- One row for each feed: how many changes are kept, and how far its consumers are behind.
--   feed       name of the feed
--   queue      name of the queue
--   retention  how long changes are kept at least (see create_feed)
--   max_bytes  size of the feed up to which older changes stay for registered consumers; null: they don't stay
--   kept       number of changes that are kept
--   bytes      size of the feed's tables
--   consumers  number of registered consumers
--   behind     number of kept changes after the offset of the consumer that is furthest behind; null: no consumer is
--              registered
create or replace view pgcombine.feed_stat as
select f.feed, f.queue, f.retention, f.max_bytes, b.kept,
       (select sum(pg_total_relation_size(to_regclass(format('pgcombine.%I', f.feed || '_feed_s' || s))))::bigint
        from generate_series(0, cardinality(f.closed) - 1) s) as bytes,
       c.consumers, c.behind
from pgcombine.feed f
cross join lateral (
    select coalesce(sum(b.last - coalesce((f.reclaimed ->> b.bucket::text)::bigint, f.number << 40)), 0)::bigint as kept
    from pgcombine.feed_bucket b where b.feed = f.feed
) b
cross join lateral (
    select count(*) as consumers, max(o.behind) as behind
    from pgcombine.feed_consumer c
    cross join lateral (
        select sum(b.last - greatest((c.after ->> b.bucket::text)::bigint,
                   coalesce((f.reclaimed ->> b.bucket::text)::bigint, f.number << 40)))::bigint as behind
        from pgcombine.feed_bucket b where b.feed = f.feed
    ) o
    where c.feed = f.feed
) c;
