-- pgcombine.drop_feed(feed)
-- Drops a feed with its changes and its functions. The call waits for running passes, and then for readers of the feed.
-- Meanwhile no pass over the queue begins. So the call waits for the lock on each of the feed's tables at most for
-- lock_timeout, or for 5 seconds if there is no lock_timeout.
-- Tables written: pgcombine.feed, feed_bucket, feed_consumer, component_table, observer, queue, bucket.
-- Errors: PC050 unknown feed; PC006 sessions have read the feed for too long; 40001 another session has changed the
-- queue since the snapshot; 42501 the caller doesn't own the schema.
create or replace function pgcombine.drop_feed(feed text)
returns void
language plpgsql
as $$
declare
    _feed constant pgcombine.feed := pgcombine_internal.require_feed(drop_feed.feed);
    _timeout constant text := current_setting('lock_timeout');
begin
    perform pgcombine_internal.require_owner();
    perform pgcombine_internal.claim_buckets(_feed.queue);
    begin
        perform set_config('lock_timeout', coalesce(nullif(_timeout, '0'), '5s'), true);
        execute format('lock table pgcombine.%I in access exclusive mode', _feed.feed || '_feed');
        perform set_config('lock_timeout', _timeout, true);
    exception when lock_not_available then
        raise exception 'feed "%" can''t be dropped while sessions are reading it', _feed.feed using errcode = 'PC006',
            hint = 'nothing was changed; look for long transactions in pg_stat_activity, or set lock_timeout to a '
                'longer time';
    end;
    perform pgcombine.drop_observer(_feed.queue, o.observer)
    from pgcombine.observer o
    where o.queue = _feed.queue and o.observer in ('feed ' || _feed.feed, 'feed ' || _feed.feed || ' sequence');
    execute format('drop function if exists pgcombine.%I(jsonb, integer, boolean, jsonb), pgcombine.%I()',
        _feed.feed || '_read', _feed.feed || '_snapshot');
    execute format('drop table pgcombine.%I', _feed.feed || '_feed');
    delete from pgcombine.component_table t where t.name = _feed.feed || '_feed';
    delete from pgcombine.feed f where f.feed = _feed.feed;
end
$$;
