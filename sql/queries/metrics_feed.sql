select feed, queue, lag_seconds from pgcombine.feed_stat
