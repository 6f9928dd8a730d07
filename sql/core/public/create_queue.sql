-- pgcombine.create_queue(queue, key, value [, delete_when, buckets, notify, pass_limit, buckets_per_partition,
--                      tablespaces, max_backlog, quarantine_after, expire_when, expire_silently, expire_every,
--                      token_retention, if_not_exists])
-- Creates a combine queue: the tables <queue>_updates and <queue>_values, the views <queue>_pending and
-- <queue>_current, and the other objects that regenerate lists. The two tables are partitioned by the hash of the key
-- with the same modulus. The updates are also divided into a ring of segments. Partition p consists of the tables
-- <queue>_updates_b<p>_s<segment> and <queue>_values_b<p>, where p has four digits. Partition p is bucket p, unless
-- buckets share partitions.
--   queue        lower-case name of at most 40 characters
--   key, value   column definitions: 'name type' for a key, 'name type combiner' for a value (see add_columns)
--   delete_when  condition over the new values under which the key is deleted. It should hold only for values that
--                change nothing when they are combined (n = 0). Otherwise the result depends on which updates fall into
--                one pass
--   buckets      1 to 1024. Each bucket more lets one more pass run at the same time, makes inserts slower, and costs
--                five tables unless it shares a partition
--   notify       whether this call and enqueues wake sleeping workers by NOTIFY. A transaction that notifies can't be
--                prepared (PREPARE TRANSACTION)
--   pass_limit   about how many updates a pass takes at most (see plan_pass)
--   buckets_per_partition  number of buckets that share a partition. It must divide the number of buckets. Sharing
--                          makes fewer tables, but a pass also reads the rows of the other buckets in its partition
--   tablespaces  tablespaces over which the partitions are spread, in turn
--   max_backlog  about how many updates may be pending before enqueues fail, until workers have caught up. Workers
--                count them each second, so there is no limit while none runs (see check_backlog)
--   quarantine_after  number of failed passes in a row after which the failing keys are quarantined (see fail_pass)
--   expire_when  condition over key and value columns. A key for which it is true expires (see set_expiry)
--   expire_silently  whether observers don't see that keys expire
--   expire_every  how often workers scan a bucket for expired keys
--   token_retention  the minimum time for which a token of enqueue_once is kept
--   if_not_exists  whether a queue with the same definition may exist already (see same_definition)
-- Tables written: pgcombine.queue, queue_column, bucket, pass, combiner, token, tick; expiry, if an
-- option of expiry is given; those of components.
-- Errors: PC002 the queue exists (with if_not_exists: its definition differs), or another object has a name that the
-- queue needs; PC003 an invalid definition; 42501 the caller doesn't own the schema.
create or replace function pgcombine.create_queue(queue text, key text[], value text[], delete_when text default null,
    buckets integer default 1, notify boolean default true, pass_limit integer default 1000000,
    buckets_per_partition integer default 1, tablespaces text[] default null, max_backlog bigint default null,
    quarantine_after integer default 5, expire_when text default null, expire_silently boolean default false,
    expire_every interval default '10 min', token_retention interval default '14 days',
    if_not_exists boolean default false)
returns void
language plpgsql
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
declare
    _name constant text := queue;
    _problem text;
    _hint text;
    _settings jsonb;
    _unknown constant text := (
        select coalesce(t, 'null') from unnest(tablespaces) t
        where not exists (select from pg_tablespace s where s.spcname = t and t <> 'pg_global') limit 1);
begin
    -- A separate statement raises the error, since psql shows the text of the statement that raises it.
    select r.problem, r.hint into _problem, _hint
    from (values
        (_name ~ '^[a-z_][a-z0-9_]{0,39}$', 'invalid queue name ' || coalesce(quote_literal(_name), 'null'),
         'a to z, 0 to 9 and _, not a digit first, at most 40 characters'),
        (_name not like 'pg\_%' and _name not in ('queue', 'bucket', 'combiner', 'schema'),
         format('queue name "%s" is reserved', _name), 'choose another name'),
        (pass_limit >= 1, 'invalid pass limit: ' || coalesce(pass_limit::text, 'null'),
         'give at least 1; thousands are sensible'),
        (coalesce(max_backlog >= 1, true), 'invalid maximum backlog: ' || max_backlog,
         'give at least 1, or null for no limit'),
        (quarantine_after >= 1, 'invalid quarantine_after: ' || coalesce(quarantine_after::text, 'null'),
         'give at least 1: the number of failed passes in a row'),
        (token_retention > interval '0', 'invalid token_retention: ' || coalesce(token_retention::text, 'null'),
         'give a time longer than any retry may take'),
        (_unknown is null, format('there is no tablespace "%s"', _unknown),
         (select 'tablespaces: ' || string_agg(s.spcname, ', ' order by s.spcname)
          from pg_tablespace s where s.spcname <> 'pg_global'))) r (holds, problem, hint)
    where r.holds is not true;
    if found then
        raise exception using errcode = 'PC003', message = _problem, hint = _hint;
    end if;
    perform pgcombine_internal.require_owner();
    perform pgcombine_internal.check_buckets(buckets, buckets_per_partition);
    -- of two sessions that create the same queue, the second waits here until the first one's transaction ends
    insert into pgcombine.queue (queue, buckets, notify, pass_limit, partitions, tablespaces, max_backlog,
        quarantine_after, token_retention)
    values (_name, buckets, notify, pass_limit, buckets / buckets_per_partition, nullif(tablespaces, '{}'), max_backlog,
        quarantine_after, token_retention)
    on conflict do nothing;
    if not found and if_not_exists then
        _settings := jsonb_build_object('notify', notify, 'max_backlog', max_backlog, 'quarantine_after',
            quarantine_after, 'delete_when', delete_when, 'expire_when', expire_when, 'expire_silently',
            coalesce(expire_silently, false), 'expire_every', coalesce(expire_every, '10 min'), 'token_retention',
            token_retention);
        perform pgcombine_internal.same_definition(_name, key, value, _settings);
        return;
    end if;
    perform pgcombine_internal.require(found, 'PC002', format('queue "%s" exists', _name),
        'drop it first, choose another name, or give if_not_exists => true');
    select n.problem, n.hint into _problem, _hint
    from (
        select to_regclass(format('pgcombine.%I', _name || s)) is null as free,
               format('queue "%s" is being dropped', _name) as problem,
               format('pgcombine queue drop %s ends that', _name) as hint
        from unnest(array['_updates_dropped', '_values_dropped']) s
        union all
        select to_regclass(format('pgcombine.%I', _name || s)) is null,
               format('queue "%s" can''t be made: a relation named %s exists', _name, _name || s), 'choose another name'
        from unnest(array['_updates', '_values', '_pending', '_current', '_quarantine', '_quarantine_keys']) s
        union all
        select not exists (select from pg_proc p
                           where p.pronamespace = 'pgcombine'::regnamespace and p.proname = _name || s),
               format('queue "%s" can''t be made: a function pgcombine.%s exists', _name, _name || s),
               'choose another name'
        from unnest(array['_enqueue', '_get', '_get_many']) s) n
    where not n.free;
    if found then
        raise exception using errcode = 'PC002', message = _problem, hint = _hint;
    end if;
    if buckets / buckets_per_partition > 128 then
        raise warning 'queue "%": % buckets are % tables; statements on all of them take as many locks',
            _name, buckets, 5 * buckets / buckets_per_partition
            using hint = 'buckets_per_partition lets buckets share tables';
    end if;

    -- deletes tokens that a drop under an older snapshot didn't see
    delete from pgcombine.token t where t.queue = _name;
    insert into pgcombine.bucket (queue, bucket) select _name, b from generate_series(0, buckets - 1) b;
    begin
        perform pgcombine_internal.add_columns(_name, key, value);
        perform pgcombine_internal.create_tables(_name);
        if delete_when is not null then
            update pgcombine.queue q
            set delete_when = pgcombine_internal.checked_condition(_name, 'delete_when', create_queue.delete_when)
            where q.queue = _name;
            perform pgcombine_internal.warn_of_delete_when(_name);
        end if;
        perform pgcombine_internal.regenerate(_name);
        if expire_when is not null or expire_silently or expire_every <> interval '10 min' then
            perform pgcombine.set_expiry(_name, expire_when, expire_silently, expire_every);
        end if;
        perform pgcombine_internal.mark_all(_name);
        perform pgcombine_internal.tick();
        if create_queue.notify then
            notify pgcombine; -- so that sleeping workers learn of the queue
        end if;
    exception
        when sqlstate 'PC002' or sqlstate 'PC003' then -- raised again here, without the context of the inner statements
            get stacked diagnostics _hint = pg_exception_hint;
            raise exception using errcode = sqlstate, message = sqlerrm, hint = _hint;
    end;
end
$$;
