-- pgcombine_internal.handoff_truncate(name, reason) → bigint
-- Deletes all hints and quarantined updates for a server; returns the number of updates. The server is marked for
-- repair with the reason.
-- Tables written: handoff_hint, handoff_quarantine, handoff_replica.
-- Errors: PC045 the server isn't registered, or no reason is given.
create or replace function pgcombine_internal.handoff_truncate(name text, reason text)
returns bigint
language plpgsql
as $$
declare
    _updates bigint;
begin
    if not exists (select from pgcombine.handoff_replica r where r.name = handoff_truncate.name) then
        raise exception 'server "%" is not registered here', handoff_truncate.name
            using errcode = 'PC045', hint = 'pgcombine replicas ls lists those that are';
    end if;
    if coalesce(btrim(reason), '') = '' then
        raise exception 'no reason is given for deleting the hints for server "%"', handoff_truncate.name
            using errcode = 'PC045', hint = 'give a reason; it is kept until the server is repaired';
    end if;
    with gone as (
        delete from pgcombine.handoff_hint h where h.destination = handoff_truncate.name returning h.updates
    ), dropped as (
        delete from pgcombine.handoff_quarantine q where q.destination = handoff_truncate.name
        returning cardinality((q.payload::text[])[1]::text[]) as updates
    )
    select coalesce(sum(a.updates), 0) into _updates
    from (select updates from gone union all select updates from dropped) a;
    if _updates > 0 then
        perform pgcombine_internal.handoff_mark(handoff_truncate.name, 'hints were truncated: ' || reason, by_tokens => true);
    end if;
    return _updates;
end
$$;
