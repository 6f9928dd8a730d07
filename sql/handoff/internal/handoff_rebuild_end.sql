-- pgcombine_internal.handoff_rebuild_end(slots, complete) → (id, epoch, tokens)
-- Ends a rebuild, at the server that is rebuilt, once values, updates and handoff_stage are loaded. Stores the tokens
-- and payloads that the sources have. Gives the server a new id and the next epoch, so that it refuses deliveries meant
-- for its former state.
-- If the server had no tokens, it may replace a server whose hints are lost. So it is flagged for repair until the
-- servers have been compared (pgcombine replicas repair). Otherwise its own flag for repair is cleared.
-- If a source lacks a write to keys that it holds, this server has only a part of the write's updates. handoff_partial
-- records that, and the server still accepts the other updates. If this server delivers an export of one of the queues,
-- the export begins again with a full state.
--   slots      JSON: for each queue and each of its sources the slots that the source delivered, or null for all slots
--   complete   servers that lack nothing. If this server has flagged one because it was named later than the others, it
--              clears the flag
--   id, epoch  the server's new identity
--   tokens     number of tokens stored; writes of which this server has only a part don't count
-- Tables written: handoff_token, handoff_partial, handoff_retained, handoff_server, handoff_replica, handoff_stage,
-- those of own_export.
create or replace function pgcombine_internal.handoff_rebuild_end(slots jsonb, complete text[], out id uuid,
    out epoch integer, out tokens bigint)
language plpgsql
as $$
declare
    _queue text;
    _name constant text := (select s.name from pgcombine.handoff_server s);
begin
    update pgcombine.handoff_server s
    set repairing = null, needs_repair = case when not exists (select from pgcombine.handoff_token)
            then 'it replaced a server whose hints are unknown (pgcombine replicas repair)' end;
    update pgcombine.handoff_replica r set needs_repair = null, repairing = null
    where r.name = any (complete) and starts_with(r.needs_repair, 'it may lack the writes from before it was named');
    analyze handoff_stage;
    delete from pgcombine.handoff_token k where slots ? k.queue;
    delete from pgcombine.handoff_partial;

    -- deliveries with tokens older than the retention are refused anyway
    delete from handoff_stage t
    where pgcombine_internal.handoff_time(t.token) < now() - (select s.retention from pgcombine.handoff_server s);
    perform pgcombine_internal.handoff_partition(min(t.token::text)::uuid)
    from handoff_stage t group by floor(extract(epoch from pgcombine_internal.handoff_time(t.token)) / 86400);
    with found as (
        select t.token, min(t.queue) as queue, min(t.digest::text)::uuid as digest, min(t.servers) as servers,
               array_agg(t.source) as sources
        from handoff_stage t group by t.token
    ), judged as (
        -- a coordinator that holds none of the keys has the token, too, but no updates
        select f.*, not exists (select from jsonb_object_keys(slots -> f.queue) s
                                where coalesce(s = any (f.servers), true) and s <> all (f.sources)) as whole
        from found f
    ), partly as (
        insert into pgcombine.handoff_partial (token, slots)
        select j.token, (select array_agg(distinct e.slot::integer)
                         from unnest(j.sources) s, jsonb_array_elements_text(slots -> j.queue -> s) e (slot))
        from judged j where not j.whole
    )
    insert into pgcombine.handoff_token (token, queue, digest, servers)
    select j.token, j.queue, j.digest, j.servers from judged j where j.whole;
    get diagnostics tokens = row_count;
    insert into pgcombine.handoff_retained (token, queue, shape, digest, servers, placed, replicas, coordinator,
        updates,
        payload)
    select distinct on (t.token) t.token, t.queue, t.shape, t.digest, t.servers, t.placed, t.replicas, t.coordinator,
        t.updates, t.payload
    from handoff_stage t join pgcombine.handoff_token k using (token) where t.payload is not null order by t.token;

    for _queue in select jsonb_object_keys(slots) loop
        execute format('analyze pgcombine.%I', _queue || '_values');
    end loop;
    perform pgcombine_internal.own_export(e.export, e.owner)
    from pgcombine.export e where slots ? e.queue and coalesce(e.owner = _name, true);
    update pgcombine.handoff_server s set id = gen_random_uuid(), epoch = s.epoch + 1
    returning s.id, s.epoch into handoff_rebuild_end.id, handoff_rebuild_end.epoch;
end
$$;
