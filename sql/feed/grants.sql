-- Every role may see the definitions of feeds. The offsets of consumers and buckets hold no keys or values.
grant select on pgcombine.change_log, pgcombine.change_bucket, pgcombine.feed_consumer to public;
