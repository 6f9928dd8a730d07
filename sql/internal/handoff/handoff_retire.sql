-- pgcombine_internal.handoff_retire(destination, tokens, deduplicated) → bigint
-- Deletes hints whose server has acknowledged the commit; returns their number.
--   deduplicated  number of these writes that the server had before
-- Runs with its owner's rights. A caller that may hand on writes can delete the hints of queues into whose updates it
-- may insert. The token is noted as one that the server must remember (handoff_last) only if the caller may replay.
-- Tables written: handoff_hint, handoff_delivery.
-- Errors: 42501 the caller may not hand on writes.
create or replace function pgcombine_internal.handoff_retire(destination text, tokens uuid[], deduplicated bigint)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _all constant boolean := pgcombine_internal.may_replay();
    _retired bigint;
begin
    if not _all then
        perform pgcombine_internal.handoff_require();
    end if;
    delete from pgcombine.handoff_hint h
    where h.destination = handoff_retire.destination and h.token = any (tokens)
      and (_all or pgcombine_internal.has_right(h.queue, 'write', pgcombine_internal.caller()));
    get diagnostics _retired = row_count;
    if cardinality(tokens) > 0 and (_all or _retired > 0) then
        insert into pgcombine.handoff_delivery (destination, token, delivered, deduplicated)
        select handoff_retire.destination, case when _all then max(t::text)::uuid else '00000000-0000-0000-0000-000000000000' end,
               cardinality(tokens) - handoff_retire.deduplicated, handoff_retire.deduplicated
        from unnest(tokens) t;
    end if;
    return _retired;
end
$$;
