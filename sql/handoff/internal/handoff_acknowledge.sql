-- pgcombine_internal.handoff_acknowledge(destination, tokens, deduplicated) → bigint
-- Deletes the hints of writes that a server has committed, and records how many of the writes were new to the server.
-- Returns the number of deleted hints.
--   deduplicated  number of these writes that the server had before
-- Runs with its owner's rights. If the caller lacks the right work, the function deletes only hints of queues into
-- whose updates the caller may insert, and counts only deleted hints. If the caller works, the function records a
-- token that the server must remember (handoff_last). For readers of a queue of these hints (handoff_status) the
-- function records the token of a deleted hint.
-- Tables written: handoff_hint, handoff_delivery.
-- Errors: 42501 the caller lacks the right to replicate writes.
create or replace function pgcombine_internal.handoff_acknowledge(destination text, tokens uuid[], deduplicated bigint)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _all constant boolean := pgcombine_internal.has_right(null, 'work', pgcombine_internal.caller());
    _deleted bigint;
    _queue text;
    _witness uuid;
    _acknowledged bigint;
    _duplicates bigint;
begin
    if not _all then
        perform pgcombine_internal.handoff_require();
    end if;
    with gone as (
        delete from pgcombine.handoff_hint h
        where h.destination = handoff_acknowledge.destination and h.token = any (tokens)
          and (_all or pgcombine_internal.has_right(h.queue, 'handoff', pgcombine_internal.caller()))
        returning h.queue, h.token
    )
    select count(*), min(g.queue), (array_agg(g.token order by g.queue))[1] into _deleted, _queue, _witness from gone g;
    -- without the right work, only deleted hints count
    _acknowledged := case when _all then cardinality(tokens) else _deleted end;
    _duplicates := least(greatest(deduplicated, 0), _acknowledged);
    if _acknowledged > 0 then
        insert into pgcombine.handoff_delivery (destination, token, delivered, deduplicated, queue, witness)
        select handoff_acknowledge.destination, case when _all then max(t::text)::uuid
            else '00000000-0000-0000-0000-000000000000' end,
               _acknowledged - _duplicates, _duplicates, _queue, _witness
        from unnest(tokens) t;
    end if;
    return _deleted;
end
$$;
