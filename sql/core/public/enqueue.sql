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
    _table regclass;
    _updates jsonb;
    _columns text;
    _names text[];
    _keys bigint;
    _rows text;
    _insert text;
begin
    select q.* into _queue from pgcombine.queue q where q.queue = enqueue.queue;
    if not found then
        return pgcombine_internal.enqueue_elsewhere(queue, null, updates);
    end if;
    _table := format('pgcombine.%I', _queue.queue || '_updates');
    -- the row type of <queue>_values has exactly the queue's columns
    select format('jsonb_populate_recordset(row(%s)::pgcombine.%I, $1)',
               string_agg(format('%L::%s', k.initial, c.type), ', ' order by c.position), _queue.queue || '_values'),
           string_agg(quote_ident(c.name), ', ' order by c.position),
           array_agg(c.name::text order by c.position), count(*) filter (where c.role = 'key')
    into _rows, _columns, _names, _keys
    from pgcombine.queue_column c left join pgcombine.combiner k using (combiner)
    where c.queue = enqueue.queue;
    _updates := pgcombine_internal.checked_updates(_queue.queue, updates, _names, _keys);
    _insert := format('insert into %s (%s) select %s from %s', _table, _columns, _columns, _rows);
    if _queue.notify and has_table_privilege(_table, 'select')
       and not pg_try_advisory_xact_lock_shared(hashtext('pgcombine.idle'), _table::oid::integer)
    then
        -- A worker listens (see wake), so the statement notifies the channels of the rows' partitions. The trigger
        -- can't know them, and is kept quiet. The returning clause needs the privilege select.
        perform set_config('pgcombine.quiet', 'on', true);
        execute format($$with inserted as (%s returning tableoid)
            select pg_notify(
                format('pgcombine.%%s.%%s', $2, (regexp_match(c.relname, E'_b(\\d+)_s\\d+$'))[1]::integer), '')
            from (select distinct tableoid from inserted) i join pg_class c on c.oid = i.tableoid$$, _insert)
        using _updates, _queue.queue;
        perform set_config('pgcombine.quiet', 'off', true);
    else
        execute _insert using _updates;
    end if;
    return jsonb_array_length(_updates);
end
$function$;
