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
    _partly boolean;
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
        returning cardinality((q.payload::text[])[1]::text[]) as updates, q.number > 0 as partly
    )
    select coalesce(sum(a.updates), 0), coalesce(bool_or(a.partly), false) into _updates, _partly
    from (select updates, false as partly from gone union all select updates, partly from dropped) a;
    if _updates > 0 then
        -- tokens don't tell what was refused
        perform pgcombine_internal.handoff_mark(handoff_truncate.name, 'hints were truncated: ' || reason,
            by_tokens => not _partly);
    end if;
    return _updates;
end
$$;
