-- pgcombine_internal.renew_feed(feed)
-- Empties a feed, and gives it a new number, after a restore from a dump. Otherwise the restored feed could give new
-- changes sequences that the former database has given to other changes. The new number makes the former offsets too
-- old.
-- Two databases that are restored from one dump would draw the same new numbers. So the function first skips a random
-- count of numbers, which makes equal numbers unlikely.
-- Tables written: feed, feed_bucket, feed_consumer, <feed>_feed.
create or replace function pgcombine_internal.renew_feed(feed text)
returns void
language plpgsql
as $$
begin
    execute format('truncate pgcombine.%I', renew_feed.feed || '_feed');
    perform setval(s, nextval(s) + (1000 * random())::bigint)
    from pg_get_serial_sequence('pgcombine.feed', 'number') s;
    update pgcombine.feed f
    set number = default, segment = default, since = default, closed = default, reclaimed = default, turns = default
    where f.feed = renew_feed.feed;
    update pgcombine.feed_bucket b set last = f.number << 40
    from pgcombine.feed f where f.feed = renew_feed.feed and b.feed = f.feed;
    delete from pgcombine.feed_consumer c where c.feed = renew_feed.feed;
end
$$;
