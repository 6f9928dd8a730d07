-- pgcombine.commit_feed(feed, consumer, after)
-- Registers the offset up to which a consumer has read a feed. The view feed_stat shows how far consumers are behind.
-- While the feed has at most max_bytes, changes after the offset stay even if they are older than the retention.
--   consumer  a name of 1 to 200 characters. All roles that may read the queue share the names, of which a feed has at
--             most 1000
--   after     the offset (see create_feed); it may be before the former one. Null: the consumer is forgotten
-- Runs with its owner's rights, for roles that may read the queue.
-- Tables written: pgcombine.feed_consumer.
-- Errors: PC050 unknown feed; PC051 changes after the offset are no longer kept; PC003 an invalid offset or name, or
-- too many consumers; 42501 the caller lacks the right to read the queue.
create or replace function pgcombine.commit_feed(feed text, consumer text, after jsonb)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _feed constant pgcombine.change_log := pgcombine_internal.feed_reader(commit_feed.feed);
begin
    perform pgcombine_internal.require(length(commit_feed.consumer) between 1 and 200, 'PC003',
        format('invalid name of a consumer: %s', quote_nullable(commit_feed.consumer)), 'give 1 to 200 characters');
    if commit_feed.after is null then
        delete from pgcombine.feed_consumer c where c.queue = _feed.queue and c.consumer = commit_feed.consumer;
        return;
    end if;
    perform pgcombine_internal.feed_bounds(_feed.feed, commit_feed.after);
    -- feed_stat compares each consumer's offset with each bucket
    perform pgcombine_internal.require(count(*) < 1000 or bool_or(c.consumer = commit_feed.consumer), 'PC003',
        format('feed "%s" has %s consumers already, so it can''t have %L', _feed.feed, count(*), commit_feed.consumer),
        'reuse a consumer''s name, or forget consumers: commit_feed(feed, consumer, null)')
    from pgcombine.feed_consumer c where c.queue = _feed.queue;
    insert into pgcombine.feed_consumer as c (queue, consumer, after)
    values (_feed.queue, commit_feed.consumer, commit_feed.after)
    on conflict on constraint feed_consumer_pkey do update set after = excluded.after, committed_at = now();
end
$$;
