-- pgcombine_internal.handoff_discard(name, reason [, token, number] [, hints]) → bigint
-- Deletes quarantined updates that a server refused, chosen as in handoff_retry. Returns the number of deleted updates.
-- If there are some, the server is flagged for repair with the reason (see handoff_require_repair).
--   hints  whether to delete all hints for the server, too
-- Tables written: handoff_quarantine, handoff_hint, handoff_replica.
-- Errors: PC022 no such update is quarantined, if a token is given; PC045 the server isn't registered, or no reason is
-- given.
create or replace function pgcombine_internal.handoff_discard(name text, reason text, token uuid default null,
    number integer default null, hints boolean default false)
returns bigint
language plpgsql
as $$
declare
    _updates bigint;
    _partly boolean;
begin
    perform pgcombine_internal.require(
        exists (select from pgcombine.handoff_replica r where r.name = handoff_discard.name), 'PC045',
        format('server "%s" is not registered here', handoff_discard.name),
        'pgcombine replicas ls lists the registered servers');
    perform pgcombine_internal.require(btrim(reason) <> '', 'PC045',
        format('no reason is given for deleting updates for server "%s"', name),
        'give a reason; it is kept until the server is repaired');
    with dropped as (
        delete from pgcombine.handoff_hint h where hints and h.destination = handoff_discard.name returning h.updates
    ), gone as (
        delete from pgcombine.handoff_quarantine q
        where q.destination = handoff_discard.name
          and (handoff_discard.token is null or q.token = handoff_discard.token)
          and (handoff_discard.number is null or q.number = handoff_discard.number)
        returning cardinality((q.payload::text[])[1]::text[]) as updates, q.number > 0 as partly
    )
    select coalesce(sum(a.updates), 0), coalesce(bool_or(a.partly), false) into _updates, _partly
    from (select d.updates, false as partly from dropped d union all select g.updates, g.partly from gone g) a;
    perform pgcombine_internal.require(_updates > 0 or token is null, 'PC022',
        format('server "%s" has refused no such update', name),
        format('pgcombine replicas quarantine ls %s lists them', name));
    if _updates > 0 then -- by_tokens: a comparison of tokens finds missing writes, but not single missing updates
        perform pgcombine_internal.handoff_require_repair(name, case when hints
            then 'hints were truncated: '
            else 'updates that it refused were dropped: ' end || reason, by_tokens => hints and not _partly);
    end if;
    return _updates;
end
$$;
