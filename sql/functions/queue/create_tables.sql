-- pgcombine.create_tables(queue)
-- Makes the two partitioned tables of a queue from its columns in the catalog.
--   <queue>_updates  the log. No index and no identity: an enqueue writes one heap row and nothing else. A row is one
--                    update with the id of its transaction, or carries further ones in arrays (see packed_columns)
--   <queue>_values   the key is the primary key
-- Keys of types without bound on their size are limited to 2600 bytes together: the primary key takes about
-- 2700, and a key must be refused when it is enqueued, not by every pass thereafter. For a single text column a
-- domain does it: a check of the table is prepared anew by each statement for each partition it writes to.
-- Tables written: queue_column, to which the types go back as PostgreSQL names them.
-- Errors: PC003 a key type that can't be hashed or ordered.
create or replace function pgcombine.create_tables(queue text)
returns void
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine.require_queue(create_tables.queue);
    _key text;
    _types text[];
    _size text;
    _limited boolean;
    _packed text;
    _columns text;
    _bucket integer;
begin
    select string_agg(format('%I', c.name), ', ' order by c.position), array_agg(c.type)
    into _key, _types
    from pgcombine.queue_column c where c.queue = create_tables.queue and c.role = 'key';
    _size := pgcombine.key_size(create_tables.queue);
    _limited := (select count(*) = 1 from unnest(_types) t where (select y.typlen = -1 from pg_type y where y.oid = t::regtype))
                and 'text' = any (_types);
    _packed := pgcombine.packed_columns(create_tables.queue, _queue.buckets);

    begin
        select string_agg(case c.role
                when 'key' then format('%I %s%s not null', c.name,
                    case when _limited and c.type = 'text' then 'pgcombine.key_text' else c.type end, ' collate ' || c.collation)
                else format('%I %s%s default %L', c.name, c.type, ' collate ' || c.collation, k.initial) end, ', ' order by c.position)
        into _columns
        from pgcombine.queue_column c left join pgcombine.combiner k using (combiner)
        where c.queue = create_tables.queue;
        execute format('create table pgcombine.%I (%s%s%s) partition by hash (%s)', create_tables.queue || '_updates',
            _columns, ', pgcombine_tx bigint not null default txid_current()' || coalesce(', ' || _packed, ''), case when _size is null or _limited then ''
                else format(', constraint key_has_at_most_2600_bytes check (%s <= 2600)', _size) end, _key);

        select string_agg(format('%I %s%s', c.name, c.type, ' collate ' || c.collation), ', ' order by c.position)
        into _columns
        from pgcombine.queue_column c where c.queue = create_tables.queue;
        execute format('create table pgcombine.%I (%s, primary key (%s)) partition by hash (%s)',
            create_tables.queue || '_values', _columns, _key, _key);
        -- arrays have operator classes whatever their elements are; only a use tells
        execute format('select from pgcombine.%I group by %s', create_tables.queue || '_values', _key);
        if exists (select from unnest(_types) t where pgcombine.type_operator(t::regtype, 3) is null) then
            raise undefined_function using message = 'PostgreSQL compares no domains over enums';
        end if;
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

    update pgcombine.queue q set packs = _packed is not null where q.queue = create_tables.queue;
    for _bucket in 0 .. _queue.partitions - 1 loop
        perform pgcombine.create_bucket(create_tables.queue, _bucket, _queue.partitions, _packed is not null);
    end loop;
end
$$;
