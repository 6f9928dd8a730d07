-- pgcombine.handoff_take(queue, tokens, digests, servers, payloads) → (token, status)
-- Applies writes that have tokens, in one transaction: the updates of those whose token is new. Status of each:
--   applied    its token was new
--   duplicate  its token is there with the same digest: nothing was done
--   conflict   its token is there with another digest: nothing was done
--   expired    its token is older than the retention, so nobody knows whether it was applied: nothing was done
--   digests   of the whole writes, also where a server holds but a part of their updates
--   tokens    one that comes twice is applied once, as it comes first
--   servers   which servers hold updates of the writes, as JSON arrays; null: all
--   payloads  see handoff_insert_sql; null: no updates of it are for this server
-- Of a write that came in part with a rebuild (handoff_partial) the other updates go in.
-- Tables written: handoff_token, <queue>_updates, handoff_partial.
-- Errors: PC041 a token isn't a UUID of version 7, or is of tomorrow; those of an insert.
create or replace function pgcombine.handoff_take(queue text, tokens uuid[], digests uuid[],
    servers jsonb[], payloads text[], out token uuid, out status text)
returns setof record
language plpgsql
as $$
declare
    _oldest constant timestamptz := now() - (select s.retention from pgcombine.handoff_server s);
    _new uuid[];
    _wrong uuid;
    _insert text;
begin
    select t into _wrong from unnest(handoff_take.tokens) t
    where pgcombine.handoff_time(t) > now() + interval '1 day' or pgcombine.handoff_time(t) is null;
    if found then
        raise exception 'token % is %', _wrong, case when pgcombine.handoff_time(_wrong) is null
                then 'no UUID of version 7' else 'of ' || pgcombine.handoff_time(_wrong) end
            using errcode = 'PC041', hint = 'is a clock wrong? it is ' || now() || ' here';
    end if;
    perform pgcombine.handoff_partition(min(t::text)::uuid)
    from unnest(handoff_take.tokens) t where pgcombine.handoff_time(t) > _oldest
    group by floor(extract(epoch from pgcombine.handoff_time(t)) / 86400);

    -- in the order of the tokens, so that two pages with the same ones wait for each other, not in a circle
    with fresh as (
        insert into pgcombine.handoff_token as k (token, queue, digest, servers)
        select distinct on (w.token) w.token, handoff_take.queue, w.digest,
               (select array_agg(s order by s) from jsonb_array_elements_text(w.servers) s)
        from unnest(handoff_take.tokens, handoff_take.digests, handoff_take.servers) with ordinality w (token, digest, servers, number)
        where pgcombine.handoff_time(w.token) > _oldest
        order by w.token, w.number
        on conflict do nothing
        returning k.token
    )
    select coalesce(array_agg(f.token), '{}') into _new from fresh f;
    if exists (select from pgcombine.handoff_partial p where p.token = any (_new)) then
        with gone as (
            delete from pgcombine.handoff_partial p where p.token = any (_new) returning p.*
        )
        select array_agg(case when g.token is null then w.payload
                              else pgcombine.handoff_beyond(handoff_take.queue, w.payload, g.slots) end order by w.number)
        into payloads
        from unnest(handoff_take.tokens, handoff_take.payloads) with ordinality w (token, payload, number)
        left join gone g on g.token = w.token;
    end if;
    if cardinality(_new) > 0 then
        -- a few are cheaper as they are
        _insert := case when (select sum(length(p)) from unnest(payloads) p) > 1000 then pgcombine.handoff_insert_sql(handoff_take.queue, packed => true) end;
        execute coalesce(_insert, pgcombine.handoff_insert_sql(handoff_take.queue)) using
            (select array_agg(f.payload)
             from (select distinct on (w.token) w.payload
                   from unnest(handoff_take.tokens, handoff_take.payloads) with ordinality w (token, payload, number)
                   where w.token = any (_new) order by w.token, w.number) f);
    end if;
    return query
    select w.token, case when w.token = any (_new) and row_number() over (partition by w.token order by w.number) = 1 then 'applied'
                         when pgcombine.handoff_time(w.token) <= _oldest and k.token is null then 'expired'
                         when (k.digest, k.queue) = (w.digest, handoff_take.queue) then 'duplicate'
                         else 'conflict' end
    from unnest(handoff_take.tokens, handoff_take.digests) with ordinality w (token, digest, number)
    left join pgcombine.handoff_token k on k.token = w.token;
end
$$;
