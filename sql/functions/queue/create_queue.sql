-- pgcombine.create_queue(queue, key, value [, delete_when, buckets, notify, pass_limit, buckets_per_partition,
--                       tablespaces, max_backlog, quarantine_after])
-- Makes a combine queue: tables <queue>_updates and <queue>_values, both hash-partitioned by the key with the
-- same modulus (bucket b is partition …_b<b> of each), the views <queue>_pending and <queue>_current.
--   queue        lower-case name, at most 40 characters
--   key          key columns, 'name type' each
--   value        value columns, 'name type combiner' each
--   delete_when  condition over the new values under which the key is deleted; should hold only at the
--                combiners' identity (n = 0), or the result depends on where passes fall
--   buckets      1..1024; more buckets let more workers combine at once, each costs four tables
--   notify       whether enqueues wake sleeping workers by NOTIFY (which excludes PREPARE TRANSACTION)
--   pass_limit   how many updates a pass takes at once, about (see plan_pass)
--   buckets_per_partition  how many buckets share a pair of tables, each a slice of it; divides buckets. Fewer
--                tables, and COPY is fastest into at most 32; but a pass walks the rows of the other slices
--   tablespaces  over which the partitions are spread, in turn
--   max_backlog  about so many pending updates, and enqueues fail until workers have caught up (see refuse_backlog)
--   quarantine_after  after how many failed passes in a row the keys at fault are quarantined (see fail_pass)
-- Tables written: pgcombine.queue, queue_column, bucket, pass.
-- Errors: PC002 the queue exists; PC003 anything wrong with the definition; PC011 too many locks.
create or replace function pgcombine.create_queue(queue text, key text[], value text[],
    delete_when text default null, buckets integer default 16, notify boolean default true,
    pass_limit integer default 1000000, buckets_per_partition integer default 1, tablespaces text[] default null,
    max_backlog bigint default null, quarantine_after integer default 5)
returns void
language plpgsql
as $$
declare
    _name constant text := create_queue.queue;
    _definition text;
    _column record;
    _position integer := 0;
    _hint text;
begin
    if _name is null or _name !~ '^[a-z_][a-z0-9_]{0,39}$' then
        raise exception 'invalid queue name %', coalesce(quote_literal(_name), 'null')
            using errcode = 'PC003', hint = 'a to z, 0 to 9 and _, not a digit first, at most 40 characters';
    end if;
    if _name like 'pg\_%' or _name in ('queue', 'bucket', 'combiner', 'repeatable', 'schema') then
        raise exception 'queue name "%" is reserved', _name using errcode = 'PC003', hint = 'choose another name';
    end if;
    if buckets is null or buckets not between 1 and 1024 then
        raise exception 'invalid number of buckets: %', coalesce(buckets::text, 'null')
            using errcode = 'PC003', hint = 'give 1 to 1024';
    end if;
    if pass_limit is null or pass_limit < 1 then
        raise exception 'invalid pass limit: %', coalesce(pass_limit::text, 'null')
            using errcode = 'PC003', hint = 'give at least 1; thousands are sensible';
    end if;
    if buckets_per_partition is null or buckets_per_partition < 1 or buckets % buckets_per_partition <> 0 then
        raise exception 'invalid number of buckets a partition: %', coalesce(buckets_per_partition::text, 'null')
            using errcode = 'PC003', hint = format('give a number that divides the %s buckets', buckets);
    end if;
    if max_backlog < 1 then
        raise exception 'invalid maximum backlog: %', max_backlog
            using errcode = 'PC003', hint = 'give at least 1, or null for no limit';
    end if;
    if quarantine_after is null or quarantine_after < 1 then
        raise exception 'invalid quarantine_after: %', coalesce(quarantine_after::text, 'null')
            using errcode = 'PC003', hint = 'give at least 1: the number of failed passes in a row';
    end if;
    perform pgcombine.check_tablespaces(tablespaces);
    if coalesce(cardinality(key), 0) = 0 or coalesce(cardinality(value), 0) = 0 then
        raise exception 'queue "%" needs at least one key column and one value column', _name
            using errcode = 'PC003', hint = 'key => array[''word text''], value => array[''n bigint sum'']';
    end if;

    -- two sessions that create the same queue: the second waits here and then finds it
    insert into pgcombine.queue (queue, buckets, notify, pass_limit, partitions, tablespaces, max_backlog,
        quarantine_after)
    values (_name, buckets, notify, pass_limit, buckets / buckets_per_partition, nullif(tablespaces, '{}'), max_backlog,
        quarantine_after)
    on conflict do nothing;
    if not found then
        raise exception 'queue "%" exists', _name
            using errcode = 'PC002', hint = 'drop it first, or choose another name';
    end if;
    if coalesce(to_regclass(format('pgcombine.%I', _name || '_updates_dropped')),
                to_regclass(format('pgcombine.%I', _name || '_values_dropped'))) is not null then
        raise exception 'queue "%" is being dropped', _name
            using errcode = 'PC002', hint = format('call pgcombine.drop_in_portions(%L) ends that', _name);
    end if;
    if to_regclass(format('pgcombine.%I', _name || '_updates')) is not null
       or to_regclass(format('pgcombine.%I', _name || '_values')) is not null
       or to_regclass(format('pgcombine.%I', _name || '_pending')) is not null
       or to_regclass(format('pgcombine.%I', _name || '_quarantine')) is not null
       or to_regclass(format('pgcombine.%I', _name || '_quarantine_keys')) is not null
       or to_regclass(format('pgcombine.%I', _name || '_current')) is not null then
        raise exception 'queue "%" can''t be made: a relation named %_updates, _values, _pending, _quarantine, _quarantine_keys or _current exists',
            _name, _name using errcode = 'PC002', hint = 'choose another name';
    end if;
    if exists (select from pg_proc p where p.pronamespace = 'pgcombine'::regnamespace and p.proname = _name || '_enqueue') then
        raise exception 'queue "%" can''t be made: a function pgcombine.%_enqueue exists', _name, _name
            using errcode = 'PC002', hint = 'choose another name';
    end if;
    if buckets / buckets_per_partition > 128 then
        raise warning 'queue "%": % buckets are % tables; statements on all of them take as many locks',
            _name, buckets, 4 * buckets / buckets_per_partition
            using hint = 'buckets_per_partition lets buckets share tables';
    end if;

    insert into pgcombine.bucket (queue, bucket) select _name, b from generate_series(0, buckets - 1) b;
    foreach _definition in array key loop
        select * into _column from pgcombine.parse_column(_definition, 'key');
        perform pgcombine.add_column(_name, _position, 'key', _column.name, _column.type, _column.collation, null, null);
        _position := _position + 1;
    end loop;
    foreach _definition in array value loop
        select * into _column from pgcombine.parse_column(_definition, 'value');
        perform pgcombine.add_column(_name, _position, 'value', _column.name, _column.type, _column.collation,
            _column.combiner, _column.ordered_by);
        _position := _position + 1;
    end loop;

    perform pgcombine.check_order_columns(_name);
    begin
        perform pgcombine.create_tables(_name);
        if delete_when is not null then
            perform pgcombine.set_delete_when(_name, delete_when);
        end if;
        perform pgcombine.regenerate(_name);
        perform pgcombine.grant_standing(_name);
        perform pgcombine.mark_all(_name);
    exception when out_of_memory then
        get stacked diagnostics _hint = pg_exception_hint;
        if _hint like '%max_locks_per_transaction%' then
            perform pgcombine.refuse_locks(_name, 'create', 11 * buckets / buckets_per_partition + 100,
                ', or let buckets share tables: buckets_per_partition');
        end if;
        raise;
    end;
end
$$;
