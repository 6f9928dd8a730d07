-- pgcombine.regenerate(queue)
-- Makes anew what is generated for a queue: its pass, its views, its wake-up trigger. Run for each queue after
-- an upgrade, so that existing queues get the new definitions.
-- Tables written: pgcombine.queue.
create or replace function pgcombine.regenerate(queue text)
returns void
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine.require_queue(regenerate.queue);
    _updates constant text := format('pgcombine.%I', _queue.queue || '_updates');
    _values constant text := format('pgcombine.%I', _queue.queue || '_values');
    _pending constant text := format('pgcombine.%I', _queue.queue || '_pending');
    _keys text;
    _columns text;
    _typed text;
    _fold text;
    _readable text;
begin
    perform pgcombine.create_quarantine(_queue.queue);
    perform pgcombine.regenerate_pass(_queue.queue);

    select string_agg(format('%I', c.name), ', ' order by c.position) filter (where c.role = 'key'),
           string_agg(format('%I', c.name), ', ' order by c.position),
           string_agg(format('%1$I::%2$s as %1$I', c.name, c.type), ', ' order by c.position),
           string_agg(format('%s as %I', pgcombine.fold_expression(c), c.name), ', ' order by c.position)
               filter (where c.role = 'value')
    into _keys, _columns, _typed, _fold
    from pgcombine.queue_column c
    where c.queue = _queue.queue;
    -- of the queue's types: were a key's another in one half of a union, conditions on it wouldn't reach the tables
    execute format('create or replace view pgcombine.%I as select %s from %s%s',
        _queue.queue || '_pending', _typed, _updates, ' union all ' || pgcombine.packed_updates(_queue.queue, _updates, searched => true));
    perform pgcombine.generate_enqueue(_queue.queue);
    -- updates of quarantined keys, which the next pass holds, don't count; and what a Python combiner makes of
    -- pending ones can't be told here: rather no value than a wrong one
    _readable := case when exists (
            select from pgcombine.queue_column c where c.queue = _queue.queue and c.combiner = 'python')
        then format('pgcombine.refuse_pending(%L) and ', _queue.queue) else '' end || pgcombine.not_held(_queue.queue);
    -- conditions on the key reach both tables through the union: of values and plain updates one partition is read;
    -- of packed ones all, since a partition can't be told from a key inside
    execute format(
        'create or replace view pgcombine.%1$I as
         select %4$s from (
             select %5$s, %6$s
             from %8$s
             group by %5$s) as folded
         where not coalesce(%7$s, false)',
        _queue.queue || '_current', _values, _pending, _columns, _keys, _fold, coalesce(_queue.delete_when, 'false'),
        pgcombine.fold_source(_queue.queue, format('(select %1$s from %2$s union all select %1$s from %3$s where %4$s) as parts',
            _columns, _values, _pending, _readable)));
    execute format($view$comment on view pgcombine.%I is 'Values combined with pending updates, in one snapshot.'$view$,
        _queue.queue || '_current');

    if _queue.max_backlog is not null then
        execute format('create or replace trigger pgcombine_limit before insert on %s
                        for each statement execute function pgcombine.refuse_backlog(%L, %L)',
            _updates, _queue.queue, _queue.max_backlog);
    end if;
    if _queue.notify then
        execute format('create or replace trigger pgcombine_wake after insert on %s
                        for each statement execute function pgcombine.wake(%L)', _updates, _queue.queue);
    end if;
    perform pgcombine.regenerate_export(e.export) from pgcombine.export e where e.queue = _queue.queue;
end
$$;
