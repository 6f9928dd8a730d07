-- pgcombine.drop_observer(queue, observer)
-- Drops an observer: no pass that commits later runs it. The call waits for running passes.
-- Tables written: pgcombine.observer, queue, bucket.
-- Errors: PC001 unknown queue; PC003 no such observer; 40001 another session has changed the queue
-- since the snapshot; 42501 the caller isn't the owner.
create or replace function pgcombine.drop_observer(queue text, observer text)
returns void
language plpgsql
as $$
begin
    perform pgcombine_internal.require_queue(queue);
    perform pgcombine_internal.require_owner();
    perform pgcombine_internal.claim_buckets(queue, renew => true);
    delete from pgcombine.observer o where o.queue = drop_observer.queue and o.observer = drop_observer.observer;
    perform pgcombine_internal.require(found, 'PC003',
        format('queue "%s" has no observer "%s"', queue, observer),
        'select observer from pgcombine.observer lists them');
    perform pgcombine_internal.regenerate_pass(queue);
end
$$;
