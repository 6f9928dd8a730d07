-- The registered consumers of a feed: name, offset, and when the offset was registered. Parameter: the feed's name.
select consumer, after::text, committed_at from pgcombine.feed_consumer where feed = %s order by consumer
