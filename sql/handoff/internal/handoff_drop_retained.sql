-- pgcombine_internal.handoff_drop_retained(queue, tokens) → bigint
-- Deletes the retained writes with these tokens, and returns their number. The caller knows that all servers of the
-- writes have them. For each of these servers that is registered here, the function records one of the writes: if the
-- server lacks it later, the server has lost commits (handoff_status).
-- Tables written: handoff_retained, handoff_delivery.
create or replace function pgcombine_internal.handoff_drop_retained(queue text, tokens uuid[])
returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    _dropped bigint;
begin
    with gone as (
        delete from pgcombine.handoff_retained k where k.queue = handoff_drop_retained.queue and k.token = any (tokens)
        returning k.token, k.servers
    ), noted as (
        insert into pgcombine.handoff_delivery (destination, token, delivered, deduplicated, queue, witness)
        select r.name, '00000000-0000-0000-0000-000000000000', 0, 0, handoff_drop_retained.queue,
            max(g.token::text)::uuid
        from gone g
        join pgcombine.handoff_queue q on q.queue = handoff_drop_retained.queue
        join pgcombine.handoff_replica r on r.name = any (q.servers) and coalesce(r.name = any (g.servers), true)
        group by r.name
    )
    select count(*) into _dropped from gone;
    return _dropped;
end
$$;
