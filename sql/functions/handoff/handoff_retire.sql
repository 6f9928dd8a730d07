-- pgcombine.handoff_retire(destination, tokens, deduplicated) → bigint
-- Deletes hints whose server has acknowledged the commit; returns how many there were.
--   deduplicated  how many of them the server had before
-- Tables written: handoff_hint, handoff_delivery.
create or replace function pgcombine.handoff_retire(destination text, tokens uuid[], deduplicated bigint)
returns bigint
language plpgsql
as $$
declare
    _retired bigint;
begin
    delete from pgcombine.handoff_hint h where h.destination = handoff_retire.destination and h.token = any (tokens);
    get diagnostics _retired = row_count;
    if cardinality(tokens) > 0 then
        insert into pgcombine.handoff_delivery (destination, token, delivered, deduplicated)
        select handoff_retire.destination, max(t::text)::uuid, cardinality(tokens) - handoff_retire.deduplicated, handoff_retire.deduplicated
        from unnest(tokens) t;
    end if;
    return _retired;
end
$$;
