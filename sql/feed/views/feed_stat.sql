-- pgcombine.feed_stat
-- One row for each feed: how many changes are kept, and how far its consumers are behind.
--   feed         name of the feed
--   queue        name of the queue
--   retention    how long changes are kept at least (see create_feed)
--   max_bytes    size of the feed up to which older changes stay for registered consumers; null: they don't stay
--   kept         number of changes that are kept
--   bytes        size of the kept changes, in which exports have a share
--   consumers    number of registered consumers
--   behind       number of kept changes after the offset of the consumer that is furthest behind; null: no consumer is
--                registered
--   lag_seconds  age of the oldest kept change that a registered consumer hasn't read; 0: each has read all; null: no
--                consumer is registered
create or replace view pgcombine.feed_stat as
select l.feed, l.queue, l.retention, l.max_bytes, b.kept,
       (select sum(pg_total_relation_size(to_regclass(format('pgcombine.%I', l.queue || '_changes_s' || s))))::bigint
        from generate_series(0, cardinality(l.closed) - 1) s) as bytes,
       c.consumers, c.behind, pgcombine_internal.feed_lag(l.queue) as lag_seconds
from pgcombine.change_log l
cross join lateral (
    select coalesce(sum(b.last - coalesce((l.reclaimed ->> b.bucket::text)::bigint, l.number << 40)), 0)::bigint as kept
    from pgcombine.change_bucket b where b.queue = l.queue
) b
cross join lateral (
    select count(*) as consumers, max(o.behind) as behind
    from pgcombine.feed_consumer c
    cross join lateral (
        select sum(b.last - greatest((c.after ->> b.bucket::text)::bigint,
                   coalesce((l.reclaimed ->> b.bucket::text)::bigint, l.number << 40)))::bigint as behind
        from pgcombine.change_bucket b where b.queue = l.queue
    ) o
    where c.queue = l.queue
) c
where l.feed is not null;
