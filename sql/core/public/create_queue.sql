-- pgcombine.create_queue(queue, key, value [, delete_when, buckets, notify, pass_limit, buckets_per_partition,
--                      tablespaces, max_backlog, quarantine_after, retain, retain_silently, retain_every])
-- Creates a combine queue: the tables <queue>_updates and <queue>_values and the views <queue>_pending and
-- <queue>_current. Both tables are hash-partitioned by the key with the same modulus; bucket b is partition …_b<b> of
-- each.
--   queue        lower-case name, at most 40 characters
--   key, value   columns: 'name type' each, 'name type combiner' each (see add_column)
--   delete_when  condition over the new values under which the key is deleted. It should hold only at the combiners'
--                identity (n = 0); otherwise the result depends on which updates fall into one pass
--   buckets      1..1024; more buckets let more workers combine at the same time; each costs four tables
--   notify       whether enqueues wake sleeping workers by NOTIFY (which excludes PREPARE TRANSACTION)
--   pass_limit   number of updates that a pass takes at most, about (see plan_pass)
--   buckets_per_partition  number of buckets that share a pair of tables; it divides buckets. Sharing makes fewer
--                          tables, and COPY is fastest into at most 32; but a pass reads past the rows of the other
--                          buckets
--   tablespaces  over which the partitions are spread, in turn
--   max_backlog  number of pending updates, about, at which enqueues fail until workers have caught up (see
--                refuse_backlog)
--   quarantine_after  number of failed passes in a row after which the keys at fault are quarantined (see fail_pass)
--   retain       condition over key and value columns; keys for which it is false expire (see set_retain)
--   retain_silently  whether observers and exports don't see that
--   retain_every  how often workers look through a bucket for expired keys
-- Tables written: pgcombine.queue, queue_column, bucket, pass, combiner, granted_right.
-- Errors: PC002 the queue exists; PC003 an invalid definition; PC011 too many locks.
create or replace function pgcombine.create_queue(queue text, key text[], value text[],
    delete_when text default null, buckets integer default 16, notify boolean default true,
    pass_limit integer default 1000000, buckets_per_partition integer default 1, tablespaces text[] default null,
    max_backlog bigint default null, quarantine_after integer default 5, retain text default null,
    retain_silently boolean default false, retain_every interval default '10 min')
returns void
language plpgsql
as $$
declare
    _name constant text := create_queue.queue;
    _hint text;
begin
    perform pgcombine_internal.check_queue(_name, tablespaces, pass_limit, max_backlog, quarantine_after);
    perform pgcombine_internal.check_buckets(buckets, buckets_per_partition);
    -- of two sessions that create the same queue, the second waits here until the first has committed
    insert into pgcombine.queue (queue, buckets, notify, pass_limit, partitions, tablespaces, max_backlog, quarantine_after)
    values (_name, buckets, notify, pass_limit, buckets / buckets_per_partition, nullif(tablespaces, '{}'), max_backlog, quarantine_after)
    on conflict do nothing;
    perform pgcombine_internal.require(found, 'PC002', format('queue "%s" exists', _name), 'drop it first, or choose another name');
    perform pgcombine_internal.refuse_taken(_name);
    if buckets / buckets_per_partition > 128 then
        raise warning 'queue "%": % buckets are % tables; statements on all of them take as many locks',
            _name, buckets, 4 * buckets / buckets_per_partition
            using hint = 'buckets_per_partition lets buckets share tables';
    end if;

    insert into pgcombine.bucket (queue, bucket) select _name, b from generate_series(0, buckets - 1) b;
    perform pgcombine_internal.add_columns(_name, key, value);
    begin
        perform pgcombine_internal.create_tables(_name);
        if delete_when is not null then
            perform pgcombine_internal.set_delete_when(_name, delete_when);
        end if;
        perform pgcombine_internal.regenerate(_name);
        if retain is not null or retain_silently or retain_every <> interval '10 min' then
            perform pgcombine.set_retain(_name, retain, retain_silently, retain_every);
        end if;
        perform pgcombine_internal.grant_standing(_name);
        perform pgcombine_internal.mark_all(_name);
        perform pgcombine_internal.tick();
    exception when out_of_memory then
        get stacked diagnostics _hint = pg_exception_hint;
        perform pgcombine_internal.refuse_locks(_name, 'create', 11 * buckets / buckets_per_partition + 100,
            ', or let buckets share tables: buckets_per_partition', _hint);
        raise;
    end;
end
$$;
