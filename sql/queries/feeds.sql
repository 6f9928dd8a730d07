-- The feeds, with columns of the view feed_stat. Parameter: the name of a feed; null: all.
select feed, queue, extract(epoch from retention)::double precision as retention_seconds, max_bytes, kept, bytes,
       consumers, behind, lag_seconds
from pgcombine.feed_stat
where feed = coalesce(%s, feed)
order by feed
