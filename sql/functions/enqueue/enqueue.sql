-- pgcombine.enqueue(queue, updates) → bigint
-- Appends updates in the caller's transaction; returns how many. Same as inserting into <queue>_updates, but that
-- many at once are packed, as <queue>_enqueue does (see enqueue_function).
--   updates  JSON array of objects (or one object), keys and values by column name; a missing value column
--            takes its default
-- Tables written: <queue>_updates.
-- Errors: PC001 unknown queue; PC004 not an array of objects, an unknown column, a missing key column.
create or replace function pgcombine.enqueue(queue text, updates jsonb)
returns bigint
language plpgsql
as $function$
declare
    _updates constant jsonb := case jsonb_typeof(enqueue.updates) when 'object' then jsonb_build_array(enqueue.updates) else enqueue.updates end;
    _columns text;
    _defaults text;
    _arrays text;
    _rows text;
    _wrong text;
    _notify boolean;
    _insert text;
    _bucket integer;
begin
    _notify := (pgcombine.require_queue(enqueue.queue)).notify;
    if jsonb_typeof(_updates) is distinct from 'array' or exists (
        select from jsonb_array_elements(_updates) u where jsonb_typeof(u) <> 'object')
    then
        raise exception 'updates of queue "%" must be a JSON array of objects, not %', enqueue.queue, coalesce(left(updates::text, 60), 'null')
            using errcode = 'PC004', hint = '[{"word": "fluo", "n": 1}]';
    end if;
    select string_agg(distinct format('"%s"', k), ', ') into _wrong
    from jsonb_array_elements(_updates) u, jsonb_object_keys(u) k
    where not exists (select from pgcombine.queue_column c where c.queue = enqueue.queue and c.name = k);
    if _wrong is not null then
        raise exception 'queue "%" has no column %', enqueue.queue, _wrong
            using errcode = 'PC004', hint = (select 'its columns: ' || string_agg(c.name, ', ' order by c.position)
                                             from pgcombine.queue_column c where c.queue = enqueue.queue);
    end if;

    -- looked for beforehand: to catch the error of the insert would take a subtransaction, and a transaction of many
    -- calls would slow everybody's snapshots
    select string_agg(format('"%s"', c.name), ', ' order by c.position) into _wrong
    from pgcombine.queue_column c
    where c.queue = enqueue.queue and c.role = 'key'
      and exists (select from jsonb_array_elements(_updates) u where u ->> c.name is null);
    if _wrong is not null then
        raise exception 'an update of queue "%" has no key: % is missing or null', enqueue.queue, _wrong
            using errcode = 'PC004', hint = 'every key column needs a value';
    end if;

    select string_agg(format('%I', c.name), ', ' order by c.position),
           string_agg(format('%L::%s', k.initial, c.type), ', ' order by c.position),
           string_agg(format('array_agg(%I)', c.name), ', ' order by c.position)
    into _columns, _defaults, _arrays
    from pgcombine.queue_column c left join pgcombine.combiner k using (combiner)
    where c.queue = enqueue.queue;
    -- of the row type of the values, whose columns are the queue's
    _rows := format('jsonb_populate_recordset(row(%s)::pgcombine.%I, $1)', _defaults, enqueue.queue || '_values');
    _insert := format('insert into pgcombine.%1$I (%2$s) select %2$s from %3$s', enqueue.queue || '_updates', _columns, _rows);
    if _notify and has_table_privilege(format('pgcombine.%I', enqueue.queue || '_updates'), 'select')
       and pgcombine.asleep(enqueue.queue)
    then
        -- the buckets are known here: notify just these, and not the queue by the trigger; to who may
        -- insert only, returning is denied
        perform set_config('pgcombine.quiet', 'on', true);
        for _bucket in
            execute format(
                $$with inserted as (%s returning tableoid)
                  select distinct (regexp_match(c.relname, '_b(\d+)_s\d+$'))[1]::integer
                  from inserted i join pg_class c on c.oid = i.tableoid$$, _insert) using _updates
        loop
            perform pg_notify(pgcombine.channel(enqueue.queue, _bucket), '');
        end loop;
        perform set_config('pgcombine.quiet', 'off', true);
    elsif jsonb_array_length(_updates) >= 32 and pgcombine.packs(enqueue.queue)
          and to_regproc(format('pgcombine.%I', enqueue.queue || '_enqueue')) is not null then
        execute format('select pgcombine.%I(%s) from %s', enqueue.queue || '_enqueue', _arrays, _rows) using _updates;
    else
        execute _insert using _updates;
    end if;
    return jsonb_array_length(_updates);
end
$function$;
