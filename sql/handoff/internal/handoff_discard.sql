-- pgcombine_internal.handoff_discard(name, reason, token [, number]) → bigint
-- Deletes quarantined updates that a server refused, chosen as in handoff_retry; returns their number. The server then
-- lacks them for good, so it is marked for repair with the reason.
-- Tables written: handoff_quarantine, handoff_replica.
-- Errors: PC022 there are none; PC045 the server isn't registered, or no reason is given.
create or replace function pgcombine_internal.handoff_discard(name text, reason text, token uuid,
    number integer default null)
returns bigint
language plpgsql
as $$
declare
    _updates bigint;
begin
    if coalesce(btrim(reason), '') = '' then
        raise exception 'no reason is given for deleting updates for server "%"', handoff_discard.name
            using errcode = 'PC045', hint = 'give a reason; it is kept until the server is rebuilt';
    end if;
    perform from pgcombine.handoff_replica r where r.name = handoff_discard.name;
    if not found then
        raise exception 'server "%" is not registered here', handoff_discard.name
            using errcode = 'PC045', hint = 'pgcombine replicas ls lists those that are';
    end if;
    with gone as (
        delete from pgcombine.handoff_quarantine q
        where q.destination = handoff_discard.name
            and (handoff_discard.token is null or q.token = handoff_discard.token)
          and (handoff_discard.number is null or q.number = handoff_discard.number)
        returning cardinality((q.payload::text[])[1]::text[]) as updates
    )
    select coalesce(sum(g.updates), 0) into _updates from gone g;
    if _updates = 0 and handoff_discard.token is not null then
        raise exception 'server "%" has refused no such update', handoff_discard.name
            using errcode = 'PC022', hint = format('pgcombine hints show %s lists them', handoff_discard.name);
    end if;
    if _updates > 0 then
        perform pgcombine_internal.handoff_mark(handoff_discard.name,
            'updates that it refused were dropped: ' || reason);
    end if;
    return _updates;
end
$$;
