-- pgcombine.truncate_queue(queue)
-- Removes all updates, values, tokens and contributions of a queue, its quarantine and its failures, for example
-- between tests.
-- Feeds and destinations get a deletion of each key. Observers get nothing. A tier keeps what it has: truncate it
-- afterwards.
-- The function waits for the queue's writers, readers and passes, no longer than lock_timeout allows.
-- Tables written: <queue>_updates, <queue>_values, <queue>_quarantine, <queue>_quarantine_keys, <queue>_contributions,
-- quarantined_key, failure, token, contribution, sample; those of components.
-- Errors: PC001 unknown queue; PC003 the isolation level isn't read committed; 42501 the caller doesn't own the queue;
-- PC006 the tables weren't free within lock_timeout.
create or replace function pgcombine.truncate_queue(queue text)
returns void
language plpgsql
as $$
declare
    _queue constant text := (pgcombine_internal.require_queue(queue)).queue;
    _query text;
begin
    perform pgcombine_internal.require_owner();
    perform pgcombine_internal.claim_buckets(_queue, 'truncate_queue'); -- passes lock partitions alone
    for _query in select h.query from pgcombine.hook h where h.event = 'truncate' loop
        execute _query using _queue;
    end loop;
    perform pgcombine_internal.await_tables(_queue);
    execute ( -- the partitions, since triggers guard the two tables
        select format('truncate pgcombine.%I, pgcombine.%I, ', _queue || '_quarantine', _queue || '_quarantine_keys')
            || string_agg(r.name::text, ', ')
        from (select t.relid::regclass
              from unnest(array['_updates', '_values']) s (suffix)
              cross join lateral pg_partition_tree(to_regclass(format('pgcombine.%I', _queue || s.suffix))) t
              where t.isleaf
              union all
              select to_regclass(format('pgcombine.%I', _queue || '_contributions'))) r (name)
        where r.name is not null);
    delete from pgcombine.quarantined_key k where k.queue = _queue;
    delete from pgcombine.failure f where f.queue = _queue;
    delete from pgcombine.token t where t.queue = _queue;
    delete from pgcombine.contribution c where c.queue = _queue;
    delete from pgcombine.sample s where s.queue = _queue;
end
$$;
