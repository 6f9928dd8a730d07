-- pgcombine.create_feed(feed, queue [, retention, max_bytes, if_not_exists])
-- Creates a feed: from now on the changes of the queue's values are kept, for consumers that read at their own pace.
-- Passes write the changes into the table <feed>_feed, in their own transactions. The call also makes two functions. A
-- consumer begins with the first one, and then calls the second one repeatedly (see regenerate_feed):
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
--   max_bytes      size of the feed up to which changes older than the retention stay for registered consumers (see
--                  commit_feed). Null: they don't stay
--   if_not_exists  whether a feed with the same definition may exist already
-- The call waits for running passes. Later passes that change values set synchronous_commit to on, if it is off or
-- local.
-- Tables written: pgcombine.feed, feed_bucket, component_table, observer, queue, bucket.
-- Errors: PC001 unknown queue; PC002 the feed, or a relation or function with one of its names, exists; PC003 an
-- invalid definition, or a queue column with the name of another column or of a parameter of <feed>_read; 40001 another
-- session has changed the queue since the snapshot; 42501 the caller doesn't own the schema.
create or replace function pgcombine.create_feed(feed text, queue text, retention interval default '7 days',
    max_bytes bigint default null, if_not_exists boolean default false)
returns void
language plpgsql
as $$
declare
    _queue pgcombine.queue;
    _name constant text := create_feed.feed;
    _feed pgcombine.feed;
    _table constant text := create_feed.feed || '_feed';
    _parts jsonb;
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
    select f.* into _feed from pgcombine.feed f where f.feed = _name;
    if found and create_feed.if_not_exists then
        perform pgcombine_internal.require(
            (_feed.queue, _feed.retention) = (_queue.queue, create_feed.retention)
                and _feed.max_bytes is not distinct from create_feed.max_bytes,
            'PC002', format('feed "%s" exists with another definition', _name),
            'drop it first, or choose another name');
        return;
    elsif not found then -- an insert that conflicts would use up a number of the feeds' sequence
        insert into pgcombine.feed (feed, queue, retention, max_bytes)
        values (_name, _queue.queue, create_feed.retention, create_feed.max_bytes)
        on conflict do nothing -- another session has created the feed for another queue
        returning * into _feed;
    end if;
    perform pgcombine_internal.require(_feed.feed is not null and to_regclass(format('pgcombine.%I', _table)) is null
        and not exists (select from pg_proc p where p.pronamespace = 'pgcombine'::regnamespace
            and p.proname in (_name || '_read', _name || '_snapshot')), 'PC002',
        format('feed "%1$s", or one of the names %1$s_feed, %1$s_read, %1$s_snapshot, exists', _name),
        'drop it first, choose another name, or give if_not_exists => true');
    insert into pgcombine.feed_bucket (feed, bucket, queue, last)
    select _name, b, _queue.queue, _feed.number << 40 from generate_series(0, _queue.buckets - 1) b;
    begin
        execute format('create table pgcombine.%I (_segment smallint not null, _bucket integer not null,
            _sequence bigint not null, _commit_version bigint not null default txid_current(),
            _commit_timestamp timestamptz not null default now(), %s) partition by list (_segment)',
            _table, concat_ws(', ',
                pgcombine_internal.column_list(_queue.queue, 'key', '{name} {type}{collate} not null'),
                pgcombine_internal.column_list(_queue.queue, 'value', '{old} {type}{collate}'),
                pgcombine_internal.column_list(_queue.queue, 'value', '{new} {type}{collate}')));
        for _segment in 0 .. cardinality(_feed.closed) - 1 loop
            execute format('create table pgcombine.%1$I partition of pgcombine.%2$I for values in (%3$s)
                    with (autovacuum_vacuum_insert_threshold = -1);
                create unique index on pgcombine.%1$I (_bucket, _sequence);
                comment on table pgcombine.%1$I is %4$L',
                _table || '_s' || _segment, _table, _segment, format('Segment %s of %s.', _segment, _table));
        end loop;
        perform pgcombine_internal.regenerate_feed(_name);
    exception when duplicate_column or invalid_function_definition then
        raise exception 'queue "%" can''t have a feed: %', _queue.queue, sqlerrm
            using errcode = 'PC003', hint = 'no column may be named after, most, compact, upto, _after, _segment, '
                '_bucket, _sequence, _change_type, _commit_version, _commit_timestamp, old_… or new_…';
    end;
    execute format('comment on table pgcombine.%I is %L', _table, format('Changes of queue %s, for the consumers of '
        'feed %s. pgcombine.create_feed explains the columns.', _queue.queue, _name));
    insert into pgcombine.component_table (name, queue) values (_table, _queue.queue);
    perform pgcombine_internal.keep_rights();
    _parts := jsonb_build_object(
        'table', format('pgcombine.%I', _table), 'feed', quote_literal(_name),
        'columns', concat_ws(', ', pgcombine_internal.column_list(_queue.queue, 'key'),
            pgcombine_internal.column_list(_queue.queue, 'value', '{old}'),
            pgcombine_internal.column_list(_queue.queue, 'value', '{new}')));
    -- The pass has claimed its bucket, so no other pass changes the bucket's last sequence meanwhile. Consumers may
    -- read a change as soon as it is visible. Then a crash must not lose it, so the pass doesn't commit asynchronously.
    perform pgcombine.add_observer(_queue.queue, 'feed ' || _name, pgcombine_internal.fill(
        'insert into {table} (_segment, _bucket, _sequence, {columns})
select (select f.segment from pgcombine.feed f where f.feed = {feed}), {pgcombine_bucket},
       (select b.last from pgcombine.feed_bucket b where b.feed = {feed} and b.bucket = {pgcombine_bucket})
           + row_number() over (), {columns}
from changes', _parts));
    perform pgcombine.add_observer(_queue.queue, 'feed ' || _name || ' sequence', pgcombine_internal.fill(
        'update pgcombine.feed_bucket b set last = b.last + c.changes
from (select count(*) as changes from changes) c
where b.feed = {feed} and b.bucket = {pgcombine_bucket} and c.changes > 0
  and (current_setting(''synchronous_commit'') not in (''off'', ''local'')
       or set_config(''synchronous_commit'', ''on'', true) = ''on'')', _parts));
end
$$;
