-- The registered consumers of a feed: name, offset, and when it was registered. Parameter: the name of the feed.
select consumer, after::text, committed_at from pgcombine.feed_consumer where feed = %s order by consumer
