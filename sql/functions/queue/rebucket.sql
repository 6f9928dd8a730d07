-- pgcombine.rebucket(queue, buckets [, buckets_per_partition, timeout])
-- Changes the number of buckets of a queue, while writers, readers and workers go on.
--   buckets_per_partition  null: as it is
--   timeout  for how long to try for the lock of the last step
-- One transaction: killed anywhere, nothing has changed. Passes pause until it ends, since it claims all buckets.
-- Values and pending updates are copied into new partitions; then, under a lock of both tables, what came in
-- since, and the partitions are exchanged. The tables themselves stay, with their grants, views and triggers. The
-- lock lasts as long as one reading of what is in the new partitions takes: PostgreSQL checks that it is in place.
-- Updates keep their ids. The marks of the new buckets see none of them, nor of a transaction that was open at any of the
-- old marks.
-- As with TRUNCATE, a repeatable-read transaction whose snapshot is older, and that hasn't read the queue yet,
-- sees it empty afterwards.
-- Tables written: all of the queue; pgcombine.queue, bucket, pass, failure.
-- Errors: PC001 unknown queue; PC003 invalid numbers, or not under read committed; PC006 the lock wasn't to be had;
-- PC011 too many locks; PC012 the database is a copy that was not adopted yet.
create or replace function pgcombine.rebucket(queue text, buckets integer, buckets_per_partition integer default null,
    timeout interval default '5 min')
returns void
language plpgsql
as $$
declare
    _suffix constant text := '_new';
    _queue pgcombine.queue := pgcombine.require_queue(rebucket.queue);
    _until constant timestamptz := clock_timestamp() + rebucket.timeout;
    _updates constant regclass := format('pgcombine.%I', _queue.queue || '_updates');
    _values constant regclass := format('pgcombine.%I', _queue.queue || '_values');
    _partitions integer;
    _locks bigint;
    _columns text;
    _keys text;
    _packed text;
    _arrays text; -- which columns the updates lack
    _oldest bigint; -- each of the buckets' marks sees all ids below it
    _seen txid_snapshot;
    _mark txid_snapshot;
    _moved bigint;
    _round integer := 0;
    _wait integer := 100; -- ms
    _parent regclass;
    _table regclass;
    _name name;
    _number integer;
begin
    if current_setting('transaction_isolation') <> 'read committed' then -- it must see what is committed meanwhile
        raise exception 'rebucket of queue "%" needs isolation level read committed', _queue.queue
            using errcode = 'PC003', hint = 'begin transaction isolation level read committed';
    end if;
    -- as a pass does, claim before anything else: passes end, and none begins
    perform from pgcombine.bucket b where b.queue = rebucket.queue order by b.bucket for update;
    _queue := pgcombine.require_queue(rebucket.queue);
    perform pgcombine.refuse_copied();
    if buckets is null or buckets not between 1 and 1024 then
        raise exception 'invalid number of buckets: %', coalesce(buckets::text, 'null')
            using errcode = 'PC003', hint = 'give 1 to 1024';
    end if;
    buckets_per_partition := coalesce(rebucket.buckets_per_partition, _queue.buckets / _queue.partitions);
    if buckets_per_partition < 1 or rebucket.buckets % buckets_per_partition <> 0 then
        raise exception 'invalid number of buckets a partition: %', buckets_per_partition
            using errcode = 'PC003', hint = format('give a number that divides the %s buckets', buckets);
    end if;
    _partitions := rebucket.buckets / buckets_per_partition;
    if (rebucket.buckets, _partitions) = (_queue.buckets, _queue.partitions) then
        return;
    end if;

    -- the old tables, and of each new pair these, an index, and what holds long values
    _locks := pgcombine.locks_to_drop(_queue.queue) + (5 + 3 * _queue.segments) * _partitions;
    if _locks > pgcombine.lock_capacity() then
        perform pgcombine.refuse_locks(_queue.queue, 'rebucket', _locks, ', or let buckets share tables: buckets_per_partition');
    end if;
    select string_agg(format('%I', c.name), ', ' order by c.position),
           string_agg(format('%I', c.name), ', ' order by c.position) filter (where c.role = 'key')
    into _columns, _keys
    from pgcombine.queue_column c where c.queue = _queue.queue;
    _packed := pgcombine.packed_columns(_queue.queue, rebucket.buckets);
    if not exists (select from pg_attribute a where a.attrelid = _updates and a.attname = 'pgcombine_0') then
        _arrays := 'add column ' || replace(_packed, ', pgcombine_', ', add column pgcombine_'); -- they stay, for calls that wait
    end if;

    foreach _parent in array array[_updates, _values] loop
        execute format('create table %s (like %s including defaults including constraints) partition by hash (%s)',
            format('pgcombine.%I', (select c.relname from pg_class c where c.oid = _parent) || _suffix), _parent, _keys);
    end loop;
    if _arrays is not null then
        execute format('alter table pgcombine.%I %s', _queue.queue || '_updates' || _suffix, _arrays);
    end if;
    for _number in 0 .. _partitions - 1 loop
        perform pgcombine.create_bucket(_queue.queue, _number, _partitions, _packed is not null, _suffix);
    end loop;
    execute format('insert into pgcombine.%1$I (%3$s) select %3$s from %2$s', _queue.queue || '_values' || _suffix, _values, _columns);
    for _number in 0 .. _partitions - 1 loop
        _table := (pgcombine.partition_tables(_queue.queue, _number, _suffix))[2];
        execute format('alter table %s add constraint %I primary key (%s)%s', _table,
            _queue.queue || '_values_b' || to_char(_number, 'FM0000') || '_pkey' || _suffix, _keys,
            ' using index tablespace ' || quote_ident(_queue.tablespaces[1 + _number % cardinality(_queue.tablespaces)]));
        execute format('analyze %s', _table);
    end loop;

    select min(txid_snapshot_xmin(m)) into _oldest
    from pgcombine.bucket b
    cross join lateral pgcombine.bucket_marks(b.queue, b.bucket) k
    cross join unnest(k.marks) m
    where b.queue = _queue.queue;
    insert into pgcombine.restoring default values;
    loop -- leave little for the time under the lock
        _mark := pgcombine.current_mark();
        _moved := pgcombine.move_updates(_queue.queue, _suffix, _seen, _mark);
        _seen := _mark;
        _round := _round + 1;
        continue when _moved >= 10000 and _round < 5;
        exit when pgcombine.lock_queue(_queue.queue, _wait);
        if clock_timestamp() > _until then
            raise exception 'the tables of queue "%" were in use all the time', _queue.queue
                using errcode = 'PC006', hint = 'nothing was changed; look for long transactions in pg_stat_activity, or give more time';
        end if;
        perform pg_sleep(_wait / 1000.0 * (0.5 + random()));
        _wait := case when _wait < 2000 then _wait * 2 else 100 end; -- autovacuum gives way after deadlock_timeout
    end loop;
    perform pgcombine.move_updates(_queue.queue, _suffix, _seen, null);
    delete from pgcombine.restoring r where r.tx = txid_current();

    -- the view names the old tables
    execute format('create or replace view pgcombine.%I as select %s from pgcombine.%I', _queue.queue || '_pending',
        (select string_agg(format('%1$I::%2$s as %1$I', c.name, c.type), ', ' order by c.position)
         from pgcombine.queue_column c where c.queue = _queue.queue), _queue.queue || '_updates');
    for _table, _name in
        select c.oid, c.relname
        from unnest(array[_updates::text, _values::text]) o (parent), pg_partition_tree((parent || _suffix)::regclass) t join pg_class c on c.oid = t.relid
        where t.level > 0
    loop
        perform pgcombine.copy_owner(format('pgcombine.%I',
            regexp_replace(regexp_replace(_name, '_b\d+(_s\d+)?_new$', '_b0000\1'), '_s\d+$', '_s0'))::regclass, _table);
    end loop;
    for _table in select i.inhrelid from pg_inherits i where i.inhparent in (_updates, _values) loop
        execute format('drop table %s', _table);
    end loop;
    if _arrays is not null then
        execute format('alter table %s %s', _updates, _arrays);
    end if;
    for _parent in select o from unnest(array[_updates, _values]) o loop
        for _table, _name, _number in
            select c.oid, left(c.relname, -length(_suffix)), substring(c.relname from '_b(\d+)' || _suffix || '$')::integer
            from pg_partition_tree((_parent::text || _suffix)::regclass) t join pg_class c on c.oid = t.relid
            where t.level > 0
        loop
            execute format('alter table %s rename to %I', _table, _name);
            if _number is not null then -- of the bucket's segments nothing else changes
                execute format('alter table %s detach partition %s', _parent::text || _suffix, _table);
                execute format('alter table %s attach partition %s for values with (modulus %s, remainder %s)', _parent, _table, _partitions, _number);
            end if;
        end loop;
        execute format('drop table %s', _parent::text || _suffix);
    end loop;
    for _number in 0 .. _partitions - 1 loop
        _name := _queue.queue || '_values_b' || to_char(_number, 'FM0000');
        execute format('alter table pgcombine.%I rename constraint %I to %I', _name, _name || '_pkey' || _suffix, _name || '_pkey');
    end loop;

    update pgcombine.queue q
    set buckets = rebucket.buckets, partitions = _partitions, packs = _packed is not null
    where q.queue = _queue.queue;
    delete from pgcombine.bucket b where b.queue = _queue.queue and b.bucket >= rebucket.buckets;
    update pgcombine.bucket b set bucket = b.bucket where b.queue = _queue.queue; -- see create_export
    insert into pgcombine.bucket (queue, bucket) select _queue.queue, n from generate_series(_queue.buckets, rebucket.buckets - 1) n;
    perform pgcombine.mark_all(_queue.queue, format('%1$s:%1$s:', _oldest)::txid_snapshot);
    delete from pgcombine.failure f where f.queue = _queue.queue;
    execute format('create or replace view pgcombine.%I as %s', _queue.queue || '_pending', pgcombine.pending_sql(_queue.queue));
    perform pgcombine.generate_enqueue(_queue.queue);
    if _queue.notify then
        perform pg_notify(pgcombine.channel(_queue.queue), '');
    end if;
end
$$;
