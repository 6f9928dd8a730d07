-- pgcombine_internal.handoff_drop_queue(queue)
-- Deletes the tokens, hints, retained writes and refused updates of a queue that is being dropped. Warns if hints or
-- quarantined updates were deleted. If the queue has a topology or tokens here, a queue that is created later with its
-- name is of the next generation (handoff_generation).
-- Tables written: handoff_hint, handoff_quarantine, handoff_retained, handoff_refused, handoff_token, handoff_delivery,
-- handoff_queue.
create or replace function pgcombine_internal.handoff_drop_queue(queue text)
returns void
language plpgsql
as $$
declare
    _replicated boolean;
    _tokens bigint;
    _hints bigint;
    _refused bigint;
begin
    select q.servers is not null into _replicated from pgcombine.handoff_queue q
        where q.queue = handoff_drop_queue.queue;
    if not found then
        return;
    end if;
    delete from pgcombine.handoff_hint h where h.queue = handoff_drop_queue.queue;
    get diagnostics _hints = row_count;
    delete from pgcombine.handoff_quarantine q where q.queue = handoff_drop_queue.queue;
    get diagnostics _refused = row_count;
    delete from pgcombine.handoff_retained k where k.queue = handoff_drop_queue.queue;
    delete from pgcombine.handoff_refused f where f.queue = handoff_drop_queue.queue;
    delete from pgcombine.handoff_token k where k.queue = handoff_drop_queue.queue;
    get diagnostics _tokens = row_count;
    update pgcombine.handoff_delivery d set queue = null, witness = null where d.queue = handoff_drop_queue.queue;
    if _replicated or _tokens > 0 then
        update pgcombine.handoff_queue q
        set generation = q.generation + 1, dropped_at = clock_timestamp(),
            servers = null, replicas = null, placed = null, former = '{}'
        where q.queue = handoff_drop_queue.queue;
    end if;
    if _hints + _refused > 0 then
        raise warning 'queue "%" is dropped with % writes that other servers lack, and % updates that they refused',
                queue, _hints, _refused
            using hint = 'drop it on the other servers, too';
    end if;
end
$$;
