-- pgcombine_internal.enqueue_function(queue) → (parameters, body)
-- Returns the parameters and the body of <queue>_enqueue. Both are null if a column is an array or a composite, has a
-- type without arrays, or is named like a parameter ($1).
-- Where the queue packs, the function writes many updates as few rows: the first update in the row's own columns, the
-- others in arrays. That saves write-ahead log. A row holds at most 64 updates, so that it stays on its page.
-- It writes plain rows instead
--   if the updates of the call take more than a megabyte
--   if the caller may not insert into each column, or row security is active: its policies don't look into arrays
--   if rebucket has exchanged the table since the call began. The insert waits for the table's lock and only then
--   checks; to_regclass sees the current catalog, whatever the transaction's snapshot.
-- Errors: PC001 unknown queue. Of <queue>_enqueue: PC004 the arrays are of different lengths.
create or replace function pgcombine_internal.enqueue_function(queue text, out parameters text, out body text)
language plpgsql stable
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(enqueue_function.queue);
    _parts jsonb;
    _possible boolean;
begin
    select jsonb_build_object(
               'arrays', string_agg(format('$%s', c.position + 1), ', ' order by c.position),
               'defaults', string_agg(format('
    if $%1$s is null then
        $%1$s := array_fill(%2$L::%3$s, array[_count]);
    end if;', c.position + 1, k.initial, c.type), '' order by c.position) filter (where c.role = 'value')),
           bool_and(t.typarray <> 0 and b.typcategory not in ('A', 'C') and c.name !~ '^\$[0-9]+$')
    into _parts, _possible
    from pgcombine.queue_column c
    left join pgcombine.combiner k using (combiner)
    join pg_type t on t.oid = c.type::regtype
    join pg_type b on b.oid = pgcombine_internal.base_type(t.oid)
    where c.queue = _queue.queue;
    if not _possible then
        return;
    end if;
    parameters := concat_ws(', ', pgcombine_internal.column_list(_queue.queue, 'key', '{name} {type}[]'),
        pgcombine_internal.column_list(_queue.queue, 'value', '{name} {type}[] default null'));
    _parts := _parts || jsonb_build_object(
        'queue', _queue.queue, 'updates', format('pgcombine.%I', _queue.queue || '_updates'), 'columns', pgcombine_internal.column_list(_queue.queue),
        'counts', pgcombine_internal.column_list(_queue.queue, form => 'cardinality(${number})'));
    if _queue.packs then
        _parts := _parts || jsonb_build_object('pack', pgcombine_internal.fill($pack$
    if _count >= 2 and has_table_privilege({table}, 'insert') and not row_security_active({table})
       and {sound}{bounded} and 1 = all (array[{shapes}]) then -- arrays begin at subscript 1; all others are inserted as plain rows
        insert into {updates} ({columns}, {packed})
        select {first}, {others}
        from generate_series(1, _count, 64) as p (i)
        where to_regclass({segment}) is not null;
        if found then
            return _count;
        end if;
    end if;$pack$,
            _parts || jsonb_build_object(
                'table', quote_literal(_parts ->> 'updates'),
                'segment', quote_literal((pgcombine_internal.segment_tables(_queue.queue, 0))[_queue.segments + 1]),
                'packed', pgcombine_internal.column_list(_queue.queue, form => 'pgcombine_{position}'),
                'first', pgcombine_internal.column_list(_queue.queue, form => '${number}[p.i]'),
                'others', pgcombine_internal.column_list(_queue.queue, form => 'case when p.i < _count then ${number}[p.i + 1 : p.i + 63] end'),
                'sound', pgcombine_internal.all_keys_sound(_queue.queue, '${number}'),
                'bounded', ' and ' || pgcombine_internal.value_bounds(_queue.queue, 1048576, '${number}'),
                'shapes', pgcombine_internal.column_list(_queue.queue,
                    form => 'coalesce(array_lower(${number}, 1), 1), coalesce(array_ndims(${number}), 1)'))));
    end if;
    body := pgcombine_internal.fill($body$
declare
    _count constant integer := coalesce(cardinality($1), 0);
begin
    if _count <> any (array[{counts}]) then
        raise exception 'the columns of the updates for queue "{queue}" are of different lengths: %', array[{counts}]
            using errcode = 'PC004', hint = 'give an array of equal length for each column';
    end if;{defaults}{pack}
    insert into {updates} ({columns}) select * from unnest({arrays});
    return _count;
end
$body$, jsonb_build_object('pack', null) || _parts);
end
$$;
