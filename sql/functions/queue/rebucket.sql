-- pgcombine.rebucket(queue, buckets [, buckets_per_partition, timeout])
-- Changes the number of buckets of a queue, while writers, readers and workers go on.
--   buckets_per_partition  null: as it is
--   timeout  for how long to try for the lock of the last step
-- One transaction: killed anywhere, nothing has changed. Passes pause until it ends, since it claims all buckets.
-- Values and pending updates are copied into new partitions; then, under a lock of both tables, what came in
-- since, and the partitions are exchanged. The tables themselves stay, with their grants, views and triggers. The
-- lock lasts as long as one reading of the new values takes, in which PostgreSQL checks that they are in place.
-- As with TRUNCATE, a repeatable-read transaction whose snapshot is older, and that hasn't read the queue yet,
-- sees it empty afterwards.
-- Tables written: all of the queue; pgcombine.queue, bucket, failure.
-- Errors: PC001 unknown queue; PC003 invalid numbers, or not under read committed; PC006 the lock wasn't to be had;
-- PC011 too many locks.
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
    _since timestamptz;
    _old regclass;
    _tables text[];
    _names text[];
    _parent regclass;
begin
    if current_setting('transaction_isolation') <> 'read committed' then -- it must see what is committed meanwhile
        raise exception 'rebucket of queue "%" needs isolation level read committed', _queue.queue
            using errcode = 'PC003', hint = 'begin transaction isolation level read committed';
    end if;
    -- as a pass does, claim before anything else: passes end, and none begins
    perform from pgcombine.bucket b where b.queue = rebucket.queue order by b.bucket for update;
    _queue := pgcombine.require_queue(rebucket.queue);
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

    if _partitions <> _queue.partitions then
        -- the old tables, and of each new pair these two, an index, and what holds long values
        _locks := pgcombine.locks_to_drop(_queue.queue) + 7 * _partitions;
        if _locks > pgcombine.lock_capacity() then
            perform pgcombine.refuse_locks(_queue.queue, 'rebucket', _locks, ', or let buckets share tables: buckets_per_partition');
        end if;
        select string_agg(format('%I', c.name), ', ' order by c.position),
               string_agg(format('%I', c.name), ', ' order by c.position) filter (where c.role = 'key')
        into _columns, _keys
        from pgcombine.queue_column c where c.queue = _queue.queue;
        execute format('select coalesce(pgcombine.time_of(max(age(xmin))), clock_timestamp()) from %s having count(*) > 0', _updates) into _since;

        foreach _parent in array array[_updates, _values] loop
            execute format('create table %s (like %s including defaults including constraints) partition by hash (%s)',
                format('pgcombine.%I', (select c.relname from pg_class c where c.oid = _parent) || _suffix), _parent, _keys);
        end loop;
        for _number in 0 .. _partitions - 1 loop
            perform pgcombine.create_bucket(_queue.queue, _number, _partitions, _suffix);
        end loop;
        execute format('insert into pgcombine.%1$I (%3$s) select %3$s from %2$s', _queue.queue || '_values' || _suffix, _values, _columns);
        for _number in 0 .. _partitions - 1 loop
            _tables := pgcombine.partition_tables(_queue.queue, _number, _suffix);
            execute format('alter table %s add constraint %I primary key (%s)%s', _tables[2],
                _queue.queue || '_values_b' || to_char(_number, 'FM0000') || '_pkey' || _suffix, _keys,
                ' using index tablespace ' || quote_ident(_queue.tablespaces[1 + _number % cardinality(_queue.tablespaces)]));
            execute format('analyze %s', _tables[2]);
        end loop;
        for _round in 1 .. 5 loop -- leave little for the time under the lock
            exit when pgcombine.move_updates(_queue.queue, _suffix) < 10000;
        end loop;

        perform pgcombine.lock_queue(_queue.queue, _until, _suffix);
        perform pgcombine.move_updates(_queue.queue, _suffix);
        for _number in 0 .. _partitions - 1 loop
            _tables := pgcombine.partition_tables(_queue.queue, _number, _suffix);
            _names := pgcombine.partition_tables(_queue.queue, 0);
            perform pgcombine.copy_owner(_names[1]::regclass, _tables[1]::regclass),
                    pgcombine.copy_owner(_names[2]::regclass, _tables[2]::regclass);
        end loop;
        for _parent, _old in
            select i.inhparent, i.inhrelid from pg_inherits i where i.inhparent in (_updates, _values)
        loop
            execute format('alter table %s detach partition %s', _parent, _old);
            execute format('drop table %s', _old);
        end loop;
        for _number in 0 .. _partitions - 1 loop
            _tables := pgcombine.partition_tables(_queue.queue, _number, _suffix);
            _names := pgcombine.partition_tables(_queue.queue, _number);
            for _kind in 1 .. 2 loop
                _parent := case _kind when 1 then _updates else _values end;
                execute format('alter table %s detach partition %s',
                    format('pgcombine.%I', (select c.relname from pg_class c where c.oid = _parent) || _suffix), _tables[_kind]);
                execute format('alter table %s rename to %s', _tables[_kind], replace(_names[_kind], 'pgcombine.', ''));
                execute format('alter table %s attach partition %s for values with (modulus %s, remainder %s)',
                    _parent, _names[_kind], _partitions, _number);
            end loop;
            execute format('alter table %s rename constraint %I to %I', _names[2],
                _queue.queue || '_values_b' || to_char(_number, 'FM0000') || '_pkey' || _suffix,
                _queue.queue || '_values_b' || to_char(_number, 'FM0000') || '_pkey');
        end loop;
        execute format('drop table pgcombine.%I, pgcombine.%I', _queue.queue || '_updates' || _suffix, _queue.queue || '_values' || _suffix);
    elsif pgcombine.packs(_queue.queue) then -- the partitions are to be shared, and what they hold has to tell its bucket
        perform pgcombine.lock_queue(_queue.queue, _until, null);
        for _number in 0 .. _partitions - 1 loop
            perform pgcombine.unpack(_queue.queue, _number, false);
        end loop;
    end if;

    update pgcombine.queue q set buckets = rebucket.buckets, partitions = _partitions where q.queue = _queue.queue;
    -- each row changes or goes: a rival claim with an older snapshot fails, and who waits takes a new mark
    update pgcombine.bucket b
    set moves = a.moves + 1, since = least(a.since, _since)
    from (select max(o.moves) as moves, min(o.since) as since from pgcombine.bucket o where o.queue = _queue.queue) a
    where b.queue = _queue.queue;
    insert into pgcombine.bucket (queue, bucket, moves, since)
    select b.queue, n, b.moves, b.since
    from pgcombine.bucket b, generate_series(_queue.buckets, rebucket.buckets - 1) n
    where b.queue = _queue.queue and b.bucket = 0;
    delete from pgcombine.bucket b where b.queue = _queue.queue and b.bucket >= rebucket.buckets;
    delete from pgcombine.failure f where f.queue = _queue.queue;
    perform pgcombine.generate_enqueue(_queue.queue);
    if _queue.notify then
        perform pg_notify(pgcombine.channel(_queue.queue), '');
    end if;
end
$$;
