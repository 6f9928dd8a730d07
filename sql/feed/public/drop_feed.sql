-- pgcombine.drop_feed(feed)
-- Drops a feed with its changes and its functions. The call waits for running passes.
-- Tables written: pgcombine.feed, feed_bucket, feed_consumer, component_table, observer, queue, bucket.
-- Errors: PC050 unknown feed; 40001 another session has changed the queue since the snapshot.
create or replace function pgcombine.drop_feed(feed text)
returns void
language plpgsql
as $$
declare
    _feed constant pgcombine.feed := pgcombine_internal.require_feed(drop_feed.feed);
    _function text;
begin
    perform pgcombine_internal.claim_buckets(_feed.queue);
    perform pgcombine.drop_observer(_feed.queue, o.observer)
    from pgcombine.observer o
    where o.queue = _feed.queue and o.observer in ('feed ' || _feed.feed, 'feed ' || _feed.feed || ' sequence');
    for _function in
        select p.oid::regprocedure from pg_proc p
        where p.pronamespace = 'pgcombine'::regnamespace
          and p.proname in (_feed.feed || '_read', _feed.feed || '_snapshot')
    loop
        execute format('drop function %s', _function);
    end loop;
    execute format('drop table pgcombine.%I', _feed.feed || '_feed');
    delete from pgcombine.component_table t where t.name = _feed.feed || '_feed';
    delete from pgcombine.feed f where f.feed = _feed.feed;
end
$$;
