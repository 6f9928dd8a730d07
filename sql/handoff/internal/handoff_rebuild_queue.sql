-- pgcombine_internal.handoff_rebuild_queue(queue, definition, shape)
-- Empties a queue, at the server that is rebuilt, so that a copy can be loaded into its values and updates. Creates the
-- queue if it is missing. No pass runs over the queue until the transaction ends.
--   definition  the call that creates the queue, from handoff_copy_sql at the source
--   shape       the shape that the queue must have, also from handoff_copy_sql. Only its generation may differ: the
--               queue gets that generation (see handoff_generation)
-- Tables written: <queue>_values, <queue>_updates, <queue>_quarantine, <queue>_quarantine_keys, pgcombine.pass,
-- quarantined_key, handoff_queue, handoff_retained, handoff_refused; those of create_queue.
-- Errors: PC043 the queue has another definition here; those of create_queue and claim_buckets.
create or replace function pgcombine_internal.handoff_rebuild_queue(queue text, definition text, shape uuid)
returns void
language plpgsql
as $$
declare
    _generation integer;
begin
    if not exists (select from pgcombine.queue q where q.queue = handoff_rebuild_queue.queue) then
        execute definition;
    end if;
    perform pgcombine_internal.claim_buckets(queue, 'rebuild');
    _generation := pgcombine_internal.handoff_generation(queue, shape);
    perform pgcombine_internal.require(_generation is not null, 'PC043',
        format('queue "%s" has another definition on this server', queue),
        'give it the same definition on all servers, or drop it here: the rebuild creates it');
    perform set_config('pgcombine.initialize_' || queue, 'on', true); -- refuse_values checks it
    delete from pgcombine.quarantined_key k where k.queue = handoff_rebuild_queue.queue;
    delete from pgcombine.handoff_retained k where k.queue = handoff_rebuild_queue.queue;
    delete from pgcombine.handoff_refused f where f.queue = handoff_rebuild_queue.queue;
    execute format('delete from pgcombine.%I', queue || '_values');
    execute format('delete from pgcombine.%I', queue || '_quarantine');
    execute format('delete from pgcombine.%I', queue || '_quarantine_keys');
    if not pgcombine_internal.stable_hash(queue) then
        execute format('delete from pgcombine.%I', queue || '_updates');
    end if;
    -- from here on the updates that were appended so far count as combined
    perform pgcombine_internal.mark_all(queue);
    insert into pgcombine.handoff_queue (queue, generation)
    values (handoff_rebuild_queue.queue, _generation)
    on conflict on constraint handoff_queue_pkey do update set generation = excluded.generation;
end
$$;
