-- pgcombine_internal.handoff_retry(name, token [, number]) → bigint
-- Moves updates that a server refused from the quarantine into new hints; returns the number of updates. Each hint is a
-- write for that server alone, with a new token. For a write that was refused as a whole, the token is derived from the
-- write's token and content, so that another coordinator's retry of the same write has the same token. Updates that are
-- refused again return to the quarantine. The server appends a single update only if it still lacks the update
-- (handoff_refused), since another coordinator may have retried it.
--   token   the write; null: all writes
--   number  the update in the write; null: all updates of the write
-- Tables written: handoff_quarantine, handoff_hint.
-- Errors: PC022 no such update is quarantined, if a token is given; PC045 the server isn't registered or needs repair,
-- or a rebuild or a comparison is in progress, which may bring the updates.
create or replace function pgcombine_internal.handoff_retry(name text, token uuid, number integer default null)
returns bigint
language plpgsql
as $$
declare
    _repair text;
    _updates bigint;
begin
    perform from pgcombine.handoff_replica r where r.name = handoff_retry.name for share;
    perform pgcombine_internal.require(found, 'PC045',
        format('server "%s" is not registered here', name),
        'pgcombine replicas ls lists the registered servers');
    select format('server "%s" needs repair: %s', r.name, r.needs_repair) into _repair
    from pgcombine.handoff_replica r
    where r.repairing is not null or (r.name = handoff_retry.name and r.needs_repair is not null)
    order by r.name = handoff_retry.name limit 1;
    perform pgcombine_internal.require(not found, 'PC045', 'updates can''t be retried now: ' || _repair,
        'first rebuild that server (pgcombine replicas rebuild), or end its comparison (pgcombine replicas repair): '
        'both may bring the updates');
    with taken as (
        delete from pgcombine.handoff_quarantine q
        where q.destination = handoff_retry.name and (handoff_retry.token is null or q.token = handoff_retry.token)
          and (handoff_retry.number is null or q.number = handoff_retry.number)
        returning q.*
    ), put as (
        insert into pgcombine.handoff_hint (destination, token, queue, shape, digest, servers, updates, payload,
            origin, number)
        select t.destination, (case when t.number = 0 then substr(replace(t.token::text, '-', ''), 1, 12)
                else lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0') end
                || '7' || substr(r.hex, 14, 3) || 'a' || substr(r.hex, 18))::uuid, t.queue, t.shape,
               pgcombine_internal.handoff_digest(t.payload), array[t.destination],
               cardinality((t.payload::text[])[1]::text[]), t.payload, t.token,
               nullif(t.number, 0)
        from taken t
        cross join lateral (select case when t.number = 0
            then md5(t.token || t.destination || pgcombine_internal.handoff_digest(t.payload))
            else replace(gen_random_uuid()::text, '-', '') end as hex where t.token is not null) r
        returning updates
    )
    select coalesce(sum(p.updates), 0) into _updates from put p;
    perform pgcombine_internal.require(_updates > 0 or token is null, 'PC022',
        format('server "%s" has refused no such update', name),
        format('pgcombine replicas quarantine ls %s lists them', name));
    return _updates;
end
$$;
