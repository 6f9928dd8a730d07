-- pgcombine.regenerate(queue)
-- Makes a queue's generated objects anew: its pass, its views, its function <queue>_enqueue, its wake-up trigger, the
-- functions of attached tables and those of their triggers that are missing. It runs for each queue after an upgrade,
-- so that existing queues get the new definitions.
-- Tables written: pgcombine.queue; pgcombine.attachment, if an attached table was dropped.
-- Errors: PC001 unknown queue; PC002 see attach_triggers; 42501 the caller doesn't own the queue. If only the triggers
-- of another role's table can't be made, it warns.
create or replace function pgcombine.regenerate(queue text)
returns void
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(regenerate.queue);
    _updates constant text := format('pgcombine.%I', _queue.queue || '_updates');
    _attachment integer;
begin
    perform pgcombine_internal.create_quarantine(_queue.queue);
    perform pgcombine_internal.regenerate_pass(_queue.queue);

    execute format('create or replace view pgcombine.%I as %s', _queue.queue || '_pending', pgcombine_internal.pending_sql(_queue.queue));
    execute format('create or replace view pgcombine.%I as %s', _queue.queue || '_current', pgcombine_internal.current_sql(_queue.queue));
    perform pgcombine_internal.generate_enqueue(_queue.queue);
    execute format($view$comment on view pgcombine.%I is 'Values combined with pending updates, in one snapshot.'$view$,
        _queue.queue || '_current');

    if _queue.max_backlog is not null then
        execute format('create or replace trigger pgcombine_limit before insert on %s
                        for each statement execute function pgcombine_internal.refuse_backlog(%L, %L)',
            _updates, _queue.queue, _queue.max_backlog);
    end if;
    execute format('create or replace trigger pgcombine_wake before insert on %s
                    for each statement execute function pgcombine_internal.wake(%s)',
        _updates, case when _queue.notify then quote_literal(_queue.queue) end);
    perform pgcombine_internal.regenerate_export(e.export) from pgcombine.export e where e.queue = _queue.queue;
    for _attachment in select a.id from pgcombine.attachment a where a.queue = _queue.queue order by a.id loop
        if exists (select from pgcombine.attachment a join pg_class c on c.oid = a.source where a.id = _attachment) then
            perform pgcombine_internal.generate_attached(_attachment);
            begin
                perform pgcombine_internal.attach_triggers(_attachment);
            exception when insufficient_privilege then -- another role has dropped a trigger of its table: verify names it
                raise warning '%', sqlerrm;
            end;
        else
            perform pgcombine_internal.forget_attachment(_attachment);
        end if;
    end loop;
end
$$;
