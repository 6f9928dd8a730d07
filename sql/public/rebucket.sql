-- pgcombine.rebucket(queue, buckets [, buckets_per_partition, timeout])
-- Changes the number of a queue's buckets while writers, readers and workers go on. It is one transaction: if it fails,
-- nothing has changed. It claims all buckets, so passes pause until it ends.
--   buckets_per_partition  null: unchanged
--   timeout  how long to try for the lock of the last step
-- It copies values and pending updates into new partitions. Then it locks both tables, copies the updates that have
-- come in since, and exchanges the partitions. The tables stay, with their grants, views and triggers. The lock lasts
-- for one scan of the new partitions, by which PostgreSQL checks their rows.
-- Updates keep their ids. Only pending updates are copied. So the new buckets' marks are older than every id that was
-- open at an old mark, and all copied updates stay pending.
-- As with TRUNCATE, a repeatable-read transaction with an older snapshot that hasn't read the queue yet sees it empty.
-- Tables written: all of the queue; pgcombine.queue, bucket, pass, failure.
-- Errors: PC001 unknown queue; PC003 invalid numbers, or the isolation level isn't read committed; PC006 the lock
-- wasn't granted in time; PC011 too many locks; PC012 the database is a copy that isn't adopted yet.
create or replace function pgcombine.rebucket(queue text, buckets integer, buckets_per_partition integer default null,
    timeout interval default '5 min')
returns void
language plpgsql
as $$
declare
    _suffix constant text := '_new';
    _queue pgcombine.queue := pgcombine_internal.require_queue(rebucket.queue);
    _until constant timestamptz := clock_timestamp() + rebucket.timeout;
    _updates constant text := format('pgcombine.%I', _queue.queue || '_updates');
    _values constant text := format('pgcombine.%I', _queue.queue || '_values');
    _new_updates constant text := format('pgcombine.%I', _queue.queue || '_updates' || _suffix);
    _new_values constant text := format('pgcombine.%I', _queue.queue || '_values' || _suffix);
    _columns constant text := pgcombine_internal.column_list(_queue.queue);
    _keys constant text := pgcombine_internal.column_list(_queue.queue, 'key');
    _packed constant text := pgcombine_internal.packed_columns(_queue.queue, rebucket.buckets);
    _arrays text; -- the array columns that the updates lack
    _partitions integer;
    _timeout constant text := current_setting('lock_timeout');
    _oldest bigint; -- every mark sees all lower ids
    _seen txid_snapshot;
    _mark txid_snapshot;
    _moved bigint;
    _round integer := 0;
    _next timestamptz := '-infinity';
    _wait integer := 100; -- ms
    _children oid[];
    _child record;
    _name text;
begin
    perform pgcombine_internal.require(current_setting('transaction_isolation') = 'read committed', -- an older snapshot would miss later commits
        'PC003', format('rebucket of queue "%s" needs isolation level read committed', _queue.queue), 'begin transaction isolation level read committed');
    -- Claim the buckets first, as a pass does: passes under way end, and none begins.
    perform from pgcombine.bucket b where b.queue = rebucket.queue order by b.bucket for update;
    _queue := pgcombine_internal.require_queue(rebucket.queue);
    perform pgcombine_internal.refuse_copied();
    perform pgcombine_internal.require(buckets between 1 and 1024, 'PC003', 'invalid number of buckets: ' || coalesce(buckets::text, 'null'), 'give 1 to 1024');
    buckets_per_partition := coalesce(rebucket.buckets_per_partition, _queue.buckets / _queue.partitions);
    perform pgcombine_internal.require(buckets_per_partition >= 1 and buckets % nullif(buckets_per_partition, 0) = 0, 'PC003',
        'invalid number of buckets a partition: ' || buckets_per_partition, format('give a number that divides the %s buckets', buckets));
    _partitions := rebucket.buckets / buckets_per_partition;
    if (rebucket.buckets, _partitions) = (_queue.buckets, _queue.partitions) then
        return;
    end if;
    -- the old tables; of each new pair the tables, an index, and TOAST tables
    perform pgcombine_internal.refuse_locks(_queue.queue, 'rebucket', pgcombine_internal.locks_to_drop(_queue.queue) + (5 + 3 * _queue.segments) * _partitions,
        ', or let buckets share tables: buckets_per_partition');

    execute format('create table %s (like %s including defaults including constraints) partition by hash (%s)', _new_updates, _updates, _keys);
    execute format('create table %s (like %s including defaults including constraints) partition by hash (%s)', _new_values, _values, _keys);
    if not exists (select from pg_attribute a where a.attrelid = _updates::regclass and a.attname = 'pgcombine_0') then
        _arrays := 'add column ' || replace(_packed, ', pgcombine_', ', add column pgcombine_'); -- array columns stay even if the queue no longer packs, for enqueues that wait for the lock
    end if;
    if _arrays is not null then
        execute format('alter table %s %s', _new_updates, _arrays);
    end if;
    for _number in 0 .. _partitions - 1 loop
        perform pgcombine_internal.create_bucket(_queue.queue, _number, _partitions, _packed is not null, _suffix);
    end loop;
    execute format('insert into %s (%s) select %s from %s', _new_values, _columns, _columns, _values);
    for _number in 0 .. _partitions - 1 loop
        _name := (pgcombine_internal.partition_tables(_queue.queue, _number, _suffix))[2];
        execute format('alter table %s add constraint %I primary key (%s)%s', _name,
            _queue.queue || '_values_b' || to_char(_number, 'FM0000') || '_pkey' || _suffix, _keys,
            ' using index tablespace ' || quote_ident(_queue.tablespaces[1 + _number % cardinality(_queue.tablespaces)]));
        execute format('analyze %s', _name);
    end loop;

    select min(txid_snapshot_xmin(m)) into _oldest
    from pgcombine.bucket b
    cross join lateral pgcombine_internal.bucket_marks(b.queue, b.bucket) k
    cross join unnest(k.marks) m
    where b.queue = _queue.queue;
    insert into pgcombine.restoring default values;
    loop
        if clock_timestamp() >= _next then -- copy as much as possible before the lock
            _mark := pgcombine_internal.current_mark();
            _moved := pgcombine_internal.move_updates(_queue.queue, _new_updates, _seen, _mark);
            _seen := _mark;
            _round := _round + 1;
            continue when _moved >= 10000 and _round < 5;
            _next := clock_timestamp() + interval '10 s';
        end if;
        -- A session that waits for such a lock holds up all later ones. So it is requested briefly, again and again. The time
        -- grows, since the backlog grows meanwhile and readers take longer. Autovacuum gives way after deadlock_timeout.
        begin
            perform set_config('lock_timeout', _wait || 'ms', true);
            -- locks the view and the tables it reads, in the order of its readers
            execute format('lock table pgcombine.%I in access exclusive mode', _queue.queue || '_current');
            perform set_config('lock_timeout', _timeout, true);
            exit;
        exception when lock_not_available or deadlock_detected then null;
        end;
        perform pgcombine_internal.require(clock_timestamp() <= _until, 'PC006', format('the tables of queue "%s" were in use all the time', _queue.queue),
            'nothing was changed; look for long transactions in pg_stat_activity, or give more time');
        perform pg_sleep(_wait / 1000.0 * (0.5 + random()));
        _wait := least(_wait * 2, 10000);
    end loop;
    perform pgcombine_internal.move_updates(_queue.queue, _new_updates, _seen, null);
    delete from pgcombine.restoring r where r.tx = txid_current();

    -- The view names the old partitions, so replace its query before they are dropped.
    execute format('create or replace view pgcombine.%I as select %s from %s', _queue.queue || '_pending',
        pgcombine_internal.column_list(_queue.queue, form => '{name}::{type} as {name}'), _updates);
    select array_agg(t.relid) into _children
    from unnest(array[_new_updates, _new_values]) p cross join lateral pg_partition_tree(p::regclass) t where t.level > 0;
    perform pgcombine_internal.copy_owner(
        format('pgcombine.%I', regexp_replace(regexp_replace(c.relname, '_b\d+(_s\d+)?_new$', '_b0000\1'), '_s\d+$', '_s0'))::regclass, c.oid)
    from pg_class c where c.oid = any (_children);
    execute (select 'drop table ' || string_agg(i.inhrelid::regclass::text, ', ')
             from pg_inherits i where i.inhparent in (_updates::regclass, _values::regclass));
    if _arrays is not null then
        execute format('alter table %s %s', _updates, _arrays);
    end if;
    for _child in
        select c.oid::regclass as name, left(c.relname, -length(_suffix)) as final, p.oid::regclass as prepared,
               format('pgcombine.%I', left(p.relname, -length(_suffix))) as parent,
               substring(c.relname from '_b(\d+)' || _suffix || '$')::integer as number -- null for segments, which stay where they are
        from pg_class c join pg_inherits i on i.inhrelid = c.oid join pg_class p on p.oid = i.inhparent
        where c.oid = any (_children)
    loop
        execute format('alter table %s rename to %I', _child.name, _child.final);
        if _child.number is not null then
            execute format('alter table %s detach partition %s', _child.prepared, _child.name);
            execute format('alter table %s attach partition %s for values with (modulus %s, remainder %s)',
                _child.parent, _child.name, _partitions, _child.number);
        end if;
        if _child.parent = _values then
            execute format('alter table %s rename constraint %I to %I', _child.name, _child.final || '_pkey' || _suffix, _child.final || '_pkey');
        end if;
    end loop;
    execute format('drop table %s, %s', _new_updates, _new_values);

    update pgcombine.queue q
    set buckets = rebucket.buckets, partitions = _partitions, packs = _packed is not null
    where q.queue = _queue.queue;
    delete from pgcombine.bucket b where b.queue = _queue.queue and b.bucket >= rebucket.buckets;
    update pgcombine.bucket b set bucket = b.bucket where b.queue = _queue.queue; -- see create_export
    insert into pgcombine.bucket (queue, bucket) select _queue.queue, n from generate_series(_queue.buckets, rebucket.buckets - 1) n;
    perform pgcombine_internal.mark_all(_queue.queue, format('%s:%s:', _oldest, _oldest)::txid_snapshot);
    delete from pgcombine.failure f where f.queue = _queue.queue;
    execute format('create or replace view pgcombine.%I as %s', _queue.queue || '_pending', pgcombine_internal.pending_sql(_queue.queue));
    perform pgcombine_internal.generate_enqueue(_queue.queue);
    if _queue.notify then
        perform pg_notify(pgcombine_internal.channel(_queue.queue), '');
    end if;
end
$$;
