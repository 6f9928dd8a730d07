-- Lists the registered consumers that have one of two problems: the offset is too old (see feed_bounds); or the
-- consumer is behind and has registered no offset for a quarter of the retention, and its feed is larger than
-- max_bytes.
--   forget  the statement that forgets the consumer
select s.feed, s.queue, c.consumer, s.bytes, o.behind, o.too_old,
       format('select pgcombine.commit_feed(%L, %L, null)', s.feed, c.consumer) as forget
from pgcombine.feed_stat s
join pgcombine.change_log f on f.feed = s.feed
join pgcombine.feed_consumer c on c.queue = s.queue
cross join lateral (
    select sum(b.last - greatest(p.sequence, p.low))::bigint as behind,
           bool_or(coalesce(p.sequence < p.low, c.after <> '{}' and f.reclaimed ? b.bucket::text)) as too_old
    from pgcombine.change_bucket b
    cross join lateral (
        select (c.after ->> b.bucket::text)::bigint as sequence,
               coalesce((f.reclaimed ->> b.bucket::text)::bigint, f.number << 40) as low
    ) p
    where b.queue = s.queue
) o
where o.too_old or (s.bytes > s.max_bytes and o.behind > 0 and c.committed_at < now() - s.retention / 4)
order by s.feed, c.consumer
