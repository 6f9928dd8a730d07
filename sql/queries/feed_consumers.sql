-- The registered consumers of a feed, each with its offset and the time at which it registered the offset. Parameter:
-- the name of the feed.
select consumer, after::text, committed_at from pgcombine.feed_consumer c
join pgcombine.change_log l using (queue)
where l.feed = %s order by consumer
