-- pgcombine.enqueue(queue, updates) → bigint
-- Appends updates in the caller's transaction, as an insert into <queue>_updates does. Returns their number.
--   updates  a JSON array of objects, or one object: keys and values by column name. A value column that is missing
--            takes its default
-- If no queue has this name, the updates go to a component's object of this name (see enqueue_elsewhere).
-- Tables written: <queue>_updates, or those of a component.
-- Errors: PC001 unknown queue; PC004 neither an object nor an array of objects, an unknown column, a missing key, or a
-- key that is null; PC010 the queue is full (see refuse_backlog); PC012 the database is a copy in which post_restore
-- has not run yet; 40001 the queue was created during the call; 42501 the caller lacks the right to enqueue;
-- PostgreSQL's own for a value that doesn't fit its column; those of components.
create or replace function pgcombine.enqueue(queue text, updates jsonb)
returns bigint
language plpgsql
as $function$
declare
    _queue pgcombine.queue;
    _updates jsonb;
    _columns text;
    _names text[];
    _keys bigint;
    _rows text;
begin
    select q.* into _queue from pgcombine.queue q where q.queue = enqueue.queue;
    if not found then
        return pgcombine_internal.enqueue_elsewhere(queue, null, updates);
    end if;
    -- the row type of <queue>_values has exactly the queue's columns
    select format('jsonb_populate_recordset(row(%s)::pgcombine.%I, $1)',
               string_agg(format('%L::%s', k.initial, c.type), ', ' order by c.position), _queue.queue || '_values'),
           string_agg(quote_ident(c.name), ', ' order by c.position),
           array_agg(c.name::text order by c.position), count(*) filter (where c.role = 'key')
    into _rows, _columns, _names, _keys
    from pgcombine.queue_column c left join pgcombine.combiner k using (combiner)
    where c.queue = enqueue.queue;
    _updates := pgcombine_internal.checked_updates(_queue.queue, updates, _names, _keys);
    execute format('insert into pgcombine.%I (%s) select %s from %s', _queue.queue || '_updates', _columns,
        _columns, _rows) using _updates;
    return jsonb_array_length(_updates);
end
$function$;
