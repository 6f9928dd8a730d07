-- pgcombine.create_tables(queue)
-- Makes the two partitioned tables of a queue from its columns in the catalog.
--   <queue>_updates  no index and no identity: an enqueue writes one heap row and nothing else
--   <queue>_values   the key is the primary key
-- Keys of types without bound on their size are limited to 2600 bytes together: the primary key takes about
-- 2700, and a key must be refused when it is enqueued, not by every pass thereafter.
-- Errors: PC003 a key type that can't be hashed or ordered.
create or replace function pgcombine.create_tables(queue text)
returns void
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine.require_queue(create_tables.queue);
    _key text;
    _size text;
    _columns text;
    _bucket integer;
begin
    select string_agg(format('%I', c.name), ', ' order by c.position),
           string_agg(format(case when t.typcategory = 'S' then 'octet_length(%I::text)'
                                  when pgcombine.base_type(t.oid) = 'bytea'::regtype then 'octet_length(%I)'
                                  else 'pg_column_size(%I)' end, c.name), ' + ' order by c.position)
               filter (where t.typlen = -1)
    into _key, _size
    from pgcombine.queue_column c join pg_type t on t.oid = c.type::regtype
    where c.queue = create_tables.queue and c.role = 'key';

    begin
        select string_agg(case c.role
                when 'key' then format('%I %s%s not null', c.name, c.type, ' collate ' || c.collation)
                else format('%I %s%s default %L', c.name, c.type, ' collate ' || c.collation, k.initial) end, ', ' order by c.position)
        into _columns
        from pgcombine.queue_column c left join pgcombine.combiner k using (combiner)
        where c.queue = create_tables.queue;
        execute format('create table pgcombine.%I (%s%s) partition by hash (%s)', create_tables.queue || '_updates',
            _columns, case when _size is null then '' -- all keys are of fixed size
                else format(', constraint key_has_at_most_2600_bytes check (%s <= 2600)', _size) end, _key);

        select string_agg(format('%I %s%s', c.name, c.type, ' collate ' || c.collation), ', ' order by c.position)
        into _columns
        from pgcombine.queue_column c where c.queue = create_tables.queue;
        execute format('create table pgcombine.%I (%s, primary key (%s)) partition by hash (%s)',
            create_tables.queue || '_values', _columns, _key, _key);
        -- arrays have operator classes whatever their elements are; only a use tells
        execute format('select from pgcombine.%I group by %s', create_tables.queue || '_values', _key);
    exception when undefined_object or undefined_function then -- no operator class for hash or btree
        raise exception 'a key of queue "%" can''t be of this type: %', create_tables.queue, sqlerrm
            using errcode = 'PC003', hint = 'key types need equality, a hash and an order';
    end;

    -- as PostgreSQL names them, typmods included, whatever the search path of those who pass
    update pgcombine.queue_column c
    set type = pgcombine.type_name(a.atttypid, a.atttypmod)
    from pg_attribute a
    where c.queue = create_tables.queue
      and a.attrelid = format('pgcombine.%I', create_tables.queue || '_values')::regclass and a.attname = c.name;

    for _bucket in 0 .. _queue.partitions - 1 loop
        perform pgcombine.create_bucket(create_tables.queue, _bucket, _queue.partitions);
    end loop;
end
$$;
