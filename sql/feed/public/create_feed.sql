-- pgcombine.create_feed(feed, queue [, retention, max_bytes, if_not_exists])
-- Creates a feed: from now on the changes of the queue's values are kept, for consumers that read at their own pace.
-- A queue has one feed at most, which any number of consumers can read.
-- Passes write the changes into the table <queue>_changes, in their own transactions. The call also makes two
-- functions. A consumer begins with the first one, and then calls the second one repeatedly (see regenerate_changes):
--   <feed>_snapshot()                           returns the present offset, and all values of the queue as of it
--   <feed>_read(after [, most, compact, upto])  returns the offset after a portion of changes, and the portion: the
--                                               changes after an offset, in the order of _bucket and _sequence. The
--                                               portion has at most `most` changes, or ends at upto. It has no changes
--                                               of a bucket that upto lacks
-- Their first row has only the offset, in the column _after. For after => null that is the present offset.
-- A change has these columns:
--   _bucket             the bucket of the pass
--   _sequence           number of the change in its bucket. A bucket's numbers have no gaps, and rise in the order of
--                       commits
--   _change_type        insert, update or delete
--   _commit_version     id of the pass's transaction (txid_current), the column tx of the journal. Changes of one
--                       transaction have the same id. The ids don't show the order of commits
--   _commit_timestamp   when the pass's transaction began
--   the key columns, old_<value> (null: the key had no value), new_<value> (null: the key has none)
-- The feed has the rows of the relation changes of observers (see add_observer). It lacks keys that expire silently,
-- and values that are loaded without updates.
--   feed           lower-case name, at most 40 characters
--   retention      how long a change is kept at least, from the beginning of its pass on. Workers remove older changes
--                  from time to time. If changes after a consumer's offset were removed, the consumer must read
--                  everything again (PC051)
--   max_bytes      size of the kept changes up to which those older than the retention stay for registered consumers
--                  (see commit_feed). Null: they don't stay
--   if_not_exists  whether a feed with the same definition may exist already
-- The call waits for running passes. Later passes that change values set synchronous_commit to on, if it is off or
-- local.
-- Tables written: change_log, change_bucket, component_table, observer, queue, bucket.
-- Errors: PC001 unknown queue; PC002 the queue has a feed, the feed exists, or a relation or function with one of its
-- names; PC003 an invalid definition, or a queue column with the name of another column or of a parameter of
-- <feed>_read; 40001 another session has changed the queue since the snapshot; 42501 the caller doesn't own the schema.
create or replace function pgcombine.create_feed(feed text, queue text, retention interval default '7 days',
    max_bytes bigint default null, if_not_exists boolean default false)
returns void
language plpgsql
as $$
declare
    _queue pgcombine.queue;
    _name constant text := create_feed.feed;
    _log pgcombine.change_log;
    _problem text;
    _hint text;
begin
    select r.problem, r.hint into _problem, _hint
    from (values
        (_name ~ '^[a-z_][a-z0-9_]{0,39}$', 'invalid feed name ' || coalesce(quote_literal(_name), 'null'),
         'a to z, 0 to 9 and _, not a digit first, at most 40 characters'),
        (create_feed.retention >= interval '1 s' and create_feed.retention < interval '100 years',
         'invalid retention: ' || coalesce(create_feed.retention::text, 'null'), 'give at least a second'),
        (coalesce(create_feed.max_bytes > 0, true), 'invalid max_bytes: ' || create_feed.max_bytes,
         'give a positive number, or null')) r (holds, problem, hint)
    where r.holds is not true;
    if found then
        raise exception using errcode = 'PC003', message = _problem, hint = _hint;
    end if;
    perform pgcombine_internal.require_queue(create_feed.queue);
    perform pgcombine_internal.require_owner();
    _queue := pgcombine_internal.claim_buckets(create_feed.queue);
    select l.* into _log from pgcombine.change_log l where l.feed = _name;
    if found and create_feed.if_not_exists then
        perform pgcombine_internal.require(
            (_log.queue, _log.retention) = (_queue.queue, create_feed.retention)
                and _log.max_bytes is not distinct from create_feed.max_bytes,
            'PC002', format('feed "%s" exists with another definition', _name),
            'drop it first, or choose another name');
        return;
    end if;
    perform pgcombine_internal.require(not found and not exists (
            select from pg_proc p where p.pronamespace = 'pgcombine'::regnamespace
            and p.proname in (_name || '_read', _name || '_snapshot')), 'PC002',
        format('feed "%1$s", or one of the names %1$s_read, %1$s_snapshot, exists', _name),
        'drop it first, choose another name, or give if_not_exists => true');
    select l.* into _log from pgcombine.change_log l where l.queue = _queue.queue and l.feed is not null;
    perform pgcombine_internal.require(not found, 'PC002',
        format('queue "%s" has the feed "%s"', _queue.queue, _log.feed),
        'any number of consumers can read it, each from its own offset');
    _log := pgcombine_internal.keep_changes(_queue);
    begin
        update pgcombine.change_log l
        set feed = _name, retention = create_feed.retention, max_bytes = create_feed.max_bytes
        where l.queue = _queue.queue;
        perform pgcombine_internal.regenerate_changes(_queue.queue);
    exception
        when unique_violation then -- another session has created the feed for another queue
            perform pgcombine_internal.require(false, 'PC002', format('feed "%s" exists', _name),
                'drop it first, or choose another name');
        when invalid_function_definition then
            raise exception 'queue "%" can''t have a feed: %', _queue.queue, sqlerrm
                using errcode = 'PC003', hint = 'no column may be named after, most, compact, upto, _after, or '
                    '_change_type';
    end;
end
$$;
