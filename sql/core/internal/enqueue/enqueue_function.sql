-- pgcombine_internal.enqueue_function(queue) → (parameters, body)
-- Returns the parameters and the body of <queue>_enqueue, which appends updates in the caller's transaction and returns
-- their number. <queue>_enqueue takes an array for each column, keys first. If the array of a value column is missing
-- or null, all updates get the column's default. parameters and body are null if a column is an array or a composite,
-- has a type without arrays, or is named like a parameter ($1).
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
               'arrays', string_agg(format('unnest($%s)', c.position + 1), ', ' order by c.position),
               'defaults', string_agg(format('
    if $%1$s is null then
        $%1$s := array_fill(%2$L::%3$s, array[_count]);
    end if;', c.position + 1, k.initial, c.type), '' order by c.position) filter (where c.role = 'value')),
           bool_and(t.typarray <> 0 and b.typcategory not in ('A', 'C') and c.name !~ E'^\\$[0-9]+$')
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
        'queue', _queue.queue, 'updates', format('pgcombine.%I', _queue.queue || '_updates'),
        'columns', pgcombine_internal.column_list(_queue.queue),
        'counts', concat_ws(', ',
            pgcombine_internal.column_list(_queue.queue, 'key', 'coalesce(cardinality(${number}), 0)'),
            pgcombine_internal.column_list(_queue.queue, 'value', 'cardinality(${number})')));
    body := pgcombine_internal.fill($body$
declare
    _count constant integer := coalesce(cardinality($1), 0);
begin
    if _count <> any (array[{counts}]) then
        raise exception 'the columns of the updates for queue "{queue}" are of different lengths: %', array[{counts}]
            using errcode = 'PC004', hint = 'give an array of equal length for each column';
    end if;{defaults}
    insert into {updates} ({columns}) select {arrays};
    return _count;
end
$body$, _parts);
end
$$;
