-- pgcombine.drop_feed(feed)
-- Drops a feed, its functions, and the changes that no export has to deliver. The call waits for running passes, and
-- then for readers of the feed. Meanwhile no pass over the queue begins. So the call waits for the lock on the changes
-- at most for lock_timeout, or for 5 seconds if there is no lock_timeout.
-- Tables written: change_log, change_bucket, feed_consumer, component_table, observer, queue, bucket.
-- Errors: PC050 unknown feed; PC006 sessions have read the feed for too long; 40001 another session has changed the
-- queue since the snapshot; 42501 the caller doesn't own the schema.
create or replace function pgcombine.drop_feed(feed text)
returns void
language plpgsql
as $$
declare
    _log constant pgcombine.change_log := pgcombine_internal.require_feed(drop_feed.feed);
begin
    perform pgcombine_internal.require_owner();
    perform pgcombine_internal.claim_buckets(_log.queue);
    execute format('drop function if exists pgcombine.%I(jsonb, integer, boolean, jsonb), pgcombine.%I()',
        _log.feed || '_read', _log.feed || '_snapshot');
    update pgcombine.change_log l set feed = null, retention = default, max_bytes = null where l.queue = _log.queue;
    delete from pgcombine.feed_consumer c where c.queue = _log.queue;
    perform pgcombine_internal.forget_changes(_log.queue);
end
$$;
