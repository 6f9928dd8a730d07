-- pgcombine_internal.create_tables(queue)
-- Makes the two partitioned tables of a queue from its columns in the catalog. create_partitions makes the partitions.
--   <queue>_updates  the log. A row is one update with the id of its transaction. The table has no index and no key. It
--                    is partitioned by list: each 2 ^ segment_bits ids belong to the next segment of the ring
--   <queue>_values   the key is the primary key. The table is partitioned by the hash of the key
-- Key columns of types of variable length have at most 2600 bytes together, since an entry of the primary key's
-- index has room for about 2700. So a longer key fails when it is enqueued, not in later passes. If the only such
-- column is of type text, a domain limits its size, otherwise a check constraint of the table.
-- Tables written: queue_column, which gets the types as PostgreSQL names them.
-- Errors: PC001 unknown queue; PC003 a key type that can't be hashed or ordered.
create or replace function pgcombine_internal.create_tables(queue text)
returns void
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(queue);
    _values constant text := format('pgcombine.%I', _queue.queue || '_values');
    _key constant text := pgcombine_internal.column_list(_queue.queue, 'key');
    _size text; -- expression for the bytes of the key columns of types of variable length
    _limited boolean; -- whether the domain key_text limits the size of the key
    _columns text;
begin
    select string_agg(format(case when t.typcategory = 'S' then 'octet_length(%I::text)'
                                  when pgcombine_internal.base_type(t.oid) = 'bytea'::regtype then 'octet_length(%I)'
                                  else 'pg_column_size(%I)' end, c.name), ' + ' order by c.position),
           count(*) = 1 and bool_or(c.type = 'text')
    into _size, _limited
    from pgcombine.queue_column c join pg_type t on t.oid = c.type::regtype
    where c.queue = _queue.queue and c.role = 'key' and t.typlen = -1;
    begin
        select string_agg(format('%I %s', c.name,
                       case when _limited and c.role = 'key' and c.type = 'text' then 'pgcombine.key_text'
                            else c.type end)
                   || coalesce(' collate ' || c.collation, '')
                   || case c.role when 'key' then ' not null' else format(' default %L', k.initial) end, ', '
                   order by c.position)
        into _columns
        from pgcombine.queue_column c left join pgcombine.combiner k using (combiner)
        where c.queue = _queue.queue;
        -- The cast checks each routed row: the id is that of its transaction (see restoring). If the column had the
        -- domain as its type, PostgreSQL wouldn't check ids that come from another column of the domain (select * from
        -- another queue's updates, or from a copy).
        execute format('create table pgcombine.%I (%s)
                        partition by list (((pgcombine_tx::pgcombine.own_tx >> %s) & %s))',
            _queue.queue || '_updates',
            concat_ws(', ', _columns, 'pgcombine_tx bigint not null default txid_current()',
                case when _size is not null and not _limited
                     then format('constraint %I check (%s <= 2600)',
                         'a key has at most 2600 bytes: shorten it, or use its hash', _size) end),
            _queue.segment_bits, _queue.segments - 1);
        execute format('create table %s (%s, primary key (%s)) partition by hash (%s)', _values,
            pgcombine_internal.column_list(_queue.queue, form => '{name} {type}{collate}'), _key, _key);
        -- an array type has operator classes even if its element type has none, so only a query shows whether the key
        -- can be grouped
        execute format('select from %s group by %s', _values, _key);
        perform pgcombine_internal.require(pgcombine_internal.type_operator(c.type::regtype, 3) is not null, '42883',
            'PostgreSQL can''t compare domains over enums', '')
        from pgcombine.queue_column c where c.queue = _queue.queue and c.role = 'key';
    exception when undefined_object or undefined_function then -- a type without an operator class for hash or btree
        raise exception 'a key of queue "%" can''t be of this type: %', _queue.queue, sqlerrm
            using errcode = 'PC003', hint = 'choose a type that has an equality operator, a hash function and an order';
    end;

    -- the types get qualified names and modifiers, since passes run under other search paths
    update pgcombine.queue_column c
    set type = pgcombine_internal.type_name(a.atttypid, a.atttypmod)
    from pg_attribute a
    where c.queue = _queue.queue and a.attrelid = _values::regclass and a.attname = c.name;
    perform pgcombine_internal.create_partitions(_queue.queue, _queue.partitions);
end
$$;
