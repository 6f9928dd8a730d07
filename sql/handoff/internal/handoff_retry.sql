-- pgcombine_internal.handoff_retry(name, token [, number]) → bigint
-- Makes hints again of updates that a server refused; returns the number of updates. Each hint is a write with a token
-- of its own, a new UUID of version 7 (RFC 9562), for that server alone. Updates that are refused again return to the
-- quarantine. The server appends an update only if it still lacks it (handoff_refused): another home may have retried
-- it, too.
--   token   the write; null: all writes
--   number  the update in the write; null: all of it
-- Tables written: handoff_quarantine, handoff_hint.
-- Errors: PC022 there are none; PC045 the server isn't registered or needs a rebuild first, or a rebuild of another
-- server is under way: a rebuild may bring the updates.
create or replace function pgcombine_internal.handoff_retry(name text, token uuid, number integer default null)
returns bigint
language plpgsql
as $$
declare
    _repair text;
    _updates bigint;
begin
    perform from pgcombine.handoff_replica r where r.name = handoff_retry.name for share;
    if not found then
        raise exception 'server "%" is not registered here', handoff_retry.name
            using errcode = 'PC045', hint = 'pgcombine replicas ls lists those that are';
    end if;
    select format('server "%s" needs repair: %s', r.name, r.needs_repair) into _repair
    from pgcombine.handoff_replica r
    where r.repairing is not null or (r.name = handoff_retry.name and r.needs_repair is not null)
    order by r.name = handoff_retry.name limit 1;
    if found then
        raise exception 'updates can''t be retried now: %', _repair
            using errcode = 'PC045',
                hint = 'rebuild that server first (pgcombine handoff rebuild), or end its comparison (pgcombine hints '
                'repair): either may bring the updates';
    end if;
    with taken as (
        delete from pgcombine.handoff_quarantine q
        where q.destination = handoff_retry.name and (handoff_retry.token is null or q.token = handoff_retry.token)
          and (handoff_retry.number is null or q.number = handoff_retry.number)
        returning q.*
    ), put as (
        insert into pgcombine.handoff_hint (destination, token, queue, shape, digest, servers, updates, payload,
            origin, number)
        select t.destination, (lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0')
                || '7' || substr(r.hex, 14, 3) || substr(r.hex, 17))::uuid, t.queue, t.shape,
               pgcombine_internal.handoff_digest(t.payload), array[t.destination],
               cardinality((t.payload::text[])[1]::text[]), t.payload, t.token,
               nullif(t.number, 0)
        from taken t
        cross join lateral (select replace(gen_random_uuid()::text, '-', '') as hex where t.token is not null) r
        returning updates
    )
    select coalesce(sum(p.updates), 0) into _updates from put p;
    if _updates = 0 and handoff_retry.token is not null then
        raise exception 'server "%" has refused no such update', handoff_retry.name
            using errcode = 'PC022', hint = format('pgcombine hints show %s lists them', handoff_retry.name);
    end if;
    return _updates;
end
$$;
