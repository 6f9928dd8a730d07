-- pgcombine_internal.describe_queue(queue)
-- Writes the comments on a queue's tables and views and on their columns. create_partitions writes those on partitions.
create or replace function pgcombine_internal.describe_queue(queue text)
returns void
language plpgsql
as $$
declare
    _queue constant text := queue;
    _relation text;
    _comment text;
    _column record;
begin
    for _relation, _comment in values
        ('_updates', 'The log of queue %s: insert a row for each update.'),
        ('_values', 'The combined values of queue %s, one row for each key.'),
        ('_pending', 'The updates of queue %s that no pass has combined yet.'),
        ('_current', 'The values of queue %s with the pending updates. A join reads all keys: %1$s_get reads a few, '
            '%1$s_get_many many.'),
        ('_quarantine', 'The quarantined updates of the quarantined keys of queue %s.'),
        ('_quarantine_keys', 'The quarantined keys of queue %s: passes quarantine their updates.')
    loop
        execute format('comment on %s pgcombine.%I is %L',
            case when _relation in ('_pending', '_current') then 'view' else 'table' end,
            _queue || _relation, format(_comment, _queue));
    end loop;
    for _column in
        select c.relname, a.attname, case
            when k.role = 'key' then format('Key: %s.', k.type)
            when c.relname ~ '_(values|current)$' then format('Value, combined by %s.', m.name)
            when k.role = 'value' then format('The update''s operand of %s.', m.name)
            when a.attname = 'pgcombine_tx' then 'Id of the transaction that inserts the update: leave it out.'
            when a.attname = 'pgcombine_key' then 'Number of the key: id in pgcombine.quarantine.'
            end as comment
        from pg_class c
        join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        left join pgcombine.queue_column k on k.queue = _queue and k.name = a.attname
        cross join lateral (select k.combiner || coalesce('(' || k.ordered_by || ')', '') as name) m
        where c.relnamespace = 'pgcombine'::regnamespace and c.relname in (_queue || '_updates', _queue || '_values',
            _queue || '_pending', _queue || '_current', _queue || '_quarantine', _queue || '_quarantine_keys')
    loop
        execute format('comment on column pgcombine.%I.%I is %L', _column.relname, _column.attname, _column.comment);
    end loop;
end
$$;
